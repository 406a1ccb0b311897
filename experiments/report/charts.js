
"use strict";
(() => {
  // legends receive clicks, and the entries of hidden series are faint
  function withActiveLegends(node) {
    for (const legend of node.legends ?? []) {
      const opacity = { signal: "indexof(hidden, datum.value) >= 0 ? 0.25 : 1" };
      const part = { interactive: true, update: { opacity, cursor: { value: "pointer" } } };
      legend.encode = { ...legend.encode, symbols: part, labels: part };
    }
    (node.marks ?? []).forEach(withActiveLegends);
    return node;
  }

  // the page's security policy forbids generated code and injected styles
  const OPTIONS = {
    actions: false, renderer: "svg", ast: true, defaultStyle: false, patch: withActiveLegends,
    tooltip: { disableDefaultStyle: true },
  };

  async function drawChart(figure) {
    const canvas = document.createElement("div");
    figure.append(canvas);
    try {
      const spec = JSON.parse(figure.querySelector("script").textContent);
      const { view } = await window.vegaEmbed(canvas, spec, OPTIONS);
      view.addEventListener("click", (event, item) => {
        if (!item?.mark.role?.startsWith("legend-")) return;
        const name = item.datum.value;
        const hidden = view.signal("hidden");
        const rest = hidden.filter((one) => one !== name);
        view.signal("hidden", rest.length < hidden.length ? rest : [...hidden, name]).run();
      });
    } catch (error) {
      canvas.textContent = `The chart cannot be drawn: ${error.message}`;
    }
  }

  if (window.vegaEmbed) {
    const near = new IntersectionObserver((entries) => {
      for (const entry of entries.filter((one) => one.isIntersecting)) {
        near.unobserve(entry.target);
        drawChart(entry.target);
      }
    }, { rootMargin: "600px" });
    document.querySelectorAll("figure.chart").forEach((figure) => near.observe(figure));
  }
})();
