"use strict";
(() => {
  const main = document.querySelector("main");
  const sections = [...document.querySelectorAll("section")];
  const known = document.getElementById("labels").value.split("\n").filter(Boolean);
  const withLabels = document.getElementById("with-labels");
  const conflict = document.getElementById("conflict");
  const storageKey = `emea-review-${main.dataset.key}`;
  const targets = (section) => [...section.querySelectorAll(".option[data-target]")];

  // tabs and line breaks would end a cell of the file
  const cell = (text) => text.trim().replaceAll("\t", "\\t").replaceAll("\n", "\\n");

  function decision(section) {
    const choice = section.querySelector("input[type=radio]:checked").value;
    const options = targets(section);
    let accepted = null;
    if (choice === "other") accepted = cell(section.querySelector(".other").value) || null;
    else if (choice !== "none" && choice !== "skip") accepted = options[Number(choice)].dataset.target;
    const rejected = options
      .filter((option) => choice === "none" || option.querySelector(".reject").checked)
      .map((option) => option.dataset.target)
      .filter((target) => target !== accepted);
    return { source: section.dataset.source, accepted, rejected };
  }

  function lines() {
    const decisions = sections.map(decision);
    return {
      accepted: decisions.filter((one) => one.accepted).map((one) => `${one.source}\t${one.accepted}`),
      rejected: decisions.flatMap((one) => one.rejected.map((target) => `${one.source}\t${target}`)),
    };
  }

  // links are one-to-one, so a target may occur only once
  function repeatedTarget(accepted) {
    const seen = new Set(known.map((line) => line.split("\t")[1]));
    for (const target of accepted.map((line) => line.split("\t")[1])) {
      if (seen.has(target)) return target;
      seen.add(target);
    }
    return null;
  }

  function show() {
    for (const section of sections) {
      const { accepted, rejected } = decision(section);
      const badge = section.querySelector("[data-state]");
      badge.textContent = accepted ? "accepted" : rejected.length ? "rejected" : "open";
      badge.className = `badge ${accepted ? "good" : rejected.length ? "bad" : "none"}`;
    }
    const { accepted, rejected } = lines();
    const repeated = repeatedTarget(accepted);
    document.getElementById("summary").textContent =
      `${accepted.length} accepted, ${rejected.length} rejected pairs, ${sections.length} suggestions.`;
    conflict.hidden = repeated === null;
    conflict.textContent = repeated === null ? "" : `${repeated} has two links. Change one of the decisions.`;
    document.getElementById("save-links").disabled = repeated !== null || !accepted.length;
    document.getElementById("save-rejected").disabled = !rejected.length;
  }

  function save(name, rows) {
    const blob = new Blob([`${["source\ttarget", ...rows].join("\n")}\n`], { type: "text/tab-separated-values" });
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  // decisions survive a reload where the browser allows pages on disk to keep data
  const inputs = sections.flatMap((section) => [...section.querySelectorAll("input")]);
  function keep() {
    const state = inputs.map((input) => (input.type === "text" ? input.value : input.checked));
    try { localStorage.setItem(storageKey, JSON.stringify(state)); } catch { /* not allowed */ }
  }
  function restore() {
    let state = null;
    try { state = JSON.parse(localStorage.getItem(storageKey)); } catch { /* not allowed */ }
    if (!Array.isArray(state) || state.length !== inputs.length) return;
    inputs.forEach((input, place) => {
      if (input.type === "text") input.value = state[place];
      else input.checked = state[place];
    });
  }

  for (const section of sections) {
    section.querySelector(".other").addEventListener("input", () => {
      section.querySelector("input[value=other]").checked = true;
    });
  }
  document.addEventListener("input", () => { keep(); show(); });
  document.getElementById("save-links").addEventListener("click", () =>
    save("links.tsv", [...(withLabels.checked ? known : []), ...lines().accepted]));
  document.getElementById("save-rejected").addEventListener("click", () =>
    save("rejected.tsv", lines().rejected));
  restore();
  show();
})();
