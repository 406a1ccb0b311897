// Puts the page together: the threshold, the table, the explanation and the decisions.

const byId = (id) => document.getElementById(id);
const MOST_OPTIONS = 30;
const NARROW = 640; // pixels; charts then begin closed

// the best names first: the same name, names that begin with the text, others; short ones first
function completion(graph) {
  let texts = null;
  return (text) => {
    const wanted = text.trim().toLowerCase();
    if (!wanted) return [];
    const textsOf = (node) => [graph.short(node), graph.names[node], ...graph.othersOf(node)];
    texts ??= Array.from({ length: graph.numEntities },
      (_, node) => textsOf(node).map((one) => one.toLowerCase()));
    const found = [[], [], []];
    texts.forEach((names, node) => {
      if (names.includes(wanted)) found[0].push(node);
      else if (names[0].startsWith(wanted)) found[1].push(node);
      else if (names.some((one) => one.includes(wanted))) found[2].push(node);
    });
    const byLength = (a, b) => texts[a][0].length - texts[b][0].length;
    return found.flatMap((group) => group.sort(byLength)).slice(0, MOST_OPTIONS);
  };
}

function showCounts(page) {
  const { table, judged, matches } = page;
  const counts = table.counts();
  for (const button of document.querySelectorAll("#filters button")) {
    button.querySelector("span").textContent = counts[button.value].toLocaleString("en");
    button.setAttribute("aria-pressed", button.value === table.filter);
    button.hidden = (button.value === "suggested" && !matches.place.size);
  }
  let sum = 0, taken = 0;
  for (let row = 0; row < matches.size; row++) {
    if (table.accepted(row) && !matches.given[row]) { sum += matches.probs[row]; taken += 1; }
  }
  const facts = [["Accepted without given links", plural(taken, "match", "matches")]];
  if (taken) facts.push(["Expected precision", (sum / taken).toFixed(3)]);
  const range = ([low, high]) => `(${low.toFixed(3)}–${high.toFixed(3)})`;
  for (const one of judged) {
    const found = countsAt(one, table.threshold);
    const precision = found.taken
      ? `precision ${found.precision.toFixed(3)} ${range(found.interval)}, ` : "";
    facts.push([`On ${one.size.toLocaleString("en")} ${one.name}, 95% interval`,
      `${precision}recall ${found.recall.toFixed(3)} ${range(found.recallInterval)}`]);
  }
  byId("accepted").replaceChildren(...facts.map(([name, text]) =>
    element("div", {}, element("dt", {}, name), element("dd", {}, text))));
}

// the label and the name of an entity, if they differ
function shownName(graph, node) {
  const [short, name] = [graph.short(node), graph.names[node]];
  return short === name ? name : `${short} (${name})`;
}

function showDecisions(page) {
  const { decisions, source, target, command } = page;
  const changed = decisions.changedLink();
  const repeated = decisions.repeatedTarget();
  const numAccepted = decisions.pairs(decisions.accepted).length,
    numRejected = decisions.pairs(decisions.rejected).length;
  byId("summary").textContent = `${numAccepted} accepted, ${plural(numRejected, "rejected pair")}`;
  byId("conflict").hidden = repeated === null;
  byId("conflict").textContent = repeated === null ? ""
    : `${target.names[repeated]} has two links. Change one of the decisions.`;
  byId("changed").hidden = changed === null;
  byId("changed").textContent = changed === null ? ""
    : `The run was given another link for ${shownName(source, changed)}. Save taken_back.tsv, too: it takes that link back.`;
  byId("save-taken").hidden = changed === null;
  byId("save-links").disabled = repeated !== null || !numAccepted;
  byId("save-rejected").disabled = !numRejected;
  const files = [numAccepted ? "--links links.tsv" : "",
    numRejected ? "--rejected rejected.tsv" : "",
    changed === null ? "" : "--take-back taken_back.tsv"];
  byId("command").textContent = ["emea update", command.run, ...files.filter(Boolean)].join(" ");
  byId("decisions").hidden = !numAccepted && !numRejected && !page.isReview;
}

function connectThreshold(page, charts) {
  const { table, pane } = page, slider = byId("threshold"), field = byId("threshold-value");
  let isPlanned = false;
  const apply = () => {
    isPlanned = false;
    table.update();
    showCounts(page);
    pane.draw();
    for (const chart of charts) chart.show(table.threshold);
  };
  const set = (text) => {
    const value = Number(text);
    if (!(value >= 0 && value <= 1)) return;
    table.threshold = value;
    if (isPlanned) return;
    isPlanned = true;
    requestAnimationFrame(apply);
  };
  slider.addEventListener("input", () => { field.value = slider.value; set(slider.value); });
  field.addEventListener("input", () => { slider.value = field.value; set(field.value || "x"); });
}

function connectKeys(page) {
  const { table, pane, decisions } = page;
  const decide = {
    a: () => { if (pane.shown >= 0) decisions.accept(pane.entity, pane.shown); },
    r: () => { if (pane.shown >= 0) decisions.reject(pane.entity, [pane.shown]); },
    n: () => decisions.reject(pane.entity, matchesOf(page)),
    u: () => decisions.clear(pane.entity),
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const isTyping = event.target.matches("input[type=search], input[type=number]");
    if (event.key === "Escape" && pane.entity >= 0) { pane.close(); table.frame.focus(); }
    if (isTyping) return;
    if (event.key === "/") { event.preventDefault(); byId("search").focus(); }
    if (pane.entity >= 0 && decide[event.key]) { event.preventDefault(); decide[event.key](); }
  });
}

const matchesOf = ({ matches, pane }) => matches.candidates(pane.entity).map(([target]) => target);

function connect(page) {
  const { table, decisions, pane, matches } = page;
  byId("search").addEventListener("input", (event) => {
    table.query = event.target.value.toLowerCase().split(/\s+/).filter(Boolean);
    table.frame.scrollTop = 0;
    table.update();
    byId("found").textContent = table.query.length ? plural(table.rows.length, "row") : "";
  });
  byId("filters").addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    table.filter = button.value;
    table.frame.scrollTop = 0;
    table.update();
    showCounts(page);
  });
  byId("blind").addEventListener("change", (event) => {
    table.isBlind = event.target.checked;
    document.body.classList.toggle("blind", table.isBlind);
    table.draw();
    if (pane.entity >= 0) pane.open(pane.row);
  });
  byId("save-links").addEventListener("click",
    () => saveFile("links.tsv", decisions.linkRows(byId("with-known").checked)));
  byId("save-rejected").addEventListener("click",
    () => saveFile("rejected.tsv", decisions.rejectedRows()));
  byId("save-taken").addEventListener("click",
    () => saveFile("taken_back.tsv", decisions.takenBackRows()));
  byId("order").querySelector("[value=file]").hidden = !matches.source.fileOrder;
  byId("order").addEventListener("change", (event) => {
    table.order = event.target.value;
    table.unsort();
  });
  decisions.listeners.push(() => {
    table.draw();
    pane.draw();
    showCounts(page);
    showDecisions(page);
  });
  table.onselect = (row) => pane.open(row);
  connectKeys(page);
}

async function start() {
  const content = await readContent(byId("content"));
  const source = new Graph(content.source), target = new Graph(content.target);
  const matches = new Matches(content, source, target);
  const decisions = new Decisions(content.run_id, content.known, content.several, source, target);
  const columns = [["source", "Source entity"], ["target", "Match"], ["probability", "Probability"],
    ["runner", "Runner-up"]];
  if (matches.witnesses) columns.push(["witnesses", "Agreeing"]);
  const table = new Table(byId("table"), matches, decisions, [...columns, ["decision", "Status"]]);
  table.threshold = content.threshold;
  table.filter = matches.place.size ? "suggested" : "all";
  table.isBlind = byId("blind").checked = false;
  byId("threshold").value = byId("threshold-value").value = content.threshold;
  const judged = content.judged.filter((one) => one.links.length).map((one) =>
    ({ name: one.name, size: one.links.length + one.missed,
      matches: judgedMatches(matches, one.links) }));
  const evidence = content.evidence && new Evidence(content.evidence, source, target);
  const page = { source, target, matches, evidence, decisions, table, judged,
    command: content.command, isReview: content.is_review, search: completion(target) };
  page.asked = new Map();
  for (const one of content.asked) {
    page.asked.set(one.source, [...(page.asked.get(one.source) ?? []), one]);
  }
  page.pane = new Pane(byId("pane"), page);
  const charts = [];
  connect(page);
  connectThreshold(page, charts);
  table.update();
  showCounts(page);
  showDecisions(page);
  if (content.asked.length) table.move(0);
  document.body.classList.add("ready");
  if (innerWidth < NARROW) byId("charts").parentElement.open = false;
  charts.push(...drawCharts(byId("charts"), matches, judged.at(-1) ?? null, content.chart.colours,
    content.threshold));
  setTimeout(() => matches.texts); // so that the first search is fast
}

start().catch((error) => {
  byId("problem").hidden = false;
  byId("problem").textContent = `The page cannot be shown: ${error.message}`;
});
