// Counts at a threshold, and the three charts that show them.

const BINS = 50;
const STEPS = 100;

// the 95% interval of a share (Wilson)
function interval(right, all) {
  if (!all) return [0, 1];
  const z = 1.96, share = right / all, scale = 1 + (z * z) / all;
  const middle = (share + (z * z) / (2 * all)) / scale;
  const half = (z * Math.sqrt((share * (1 - share)) / all + (z * z) / (4 * all * all))) / scale;
  return [Math.max(0, middle - half), Math.min(1, middle + half)];
}

// the matches of the source entities of some links: [[probability, is right]], surest first
function judgedMatches(matches, links) {
  const targets = new Map();
  for (const [source, target] of links) targets.set(source, [...(targets.get(source) ?? []), target]);
  const found = [];
  for (const [source, right] of targets) {
    for (const row of matches.rowsOf.get(source) ?? []) {
      if (matches.targets[row] >= 0) found.push([matches.probs[row], right.includes(matches.targets[row])]);
    }
  }
  return found.sort((a, b) => b[0] - a[0]);
}

function countsAt(judged, threshold) {
  const taken = judged.matches.filter(([prob]) => prob >= threshold);
  const right = taken.filter(([, isRight]) => isRight).length;
  return { taken: taken.length, right, precision: taken.length ? right / taken.length : null,
    interval: interval(right, taken.length), recall: right / judged.size, recallInterval: interval(right, judged.size) };
}

function histogram(matches) {
  const counts = new Array(BINS).fill(0);
  matches.probs.forEach((prob, row) => {
    if (matches.targets[row] >= 0 && !matches.given[row]) counts[Math.min(BINS - 1, Math.floor(prob * BINS))]++;
  });
  return counts.map((count, bin) => ({ start: bin / BINS, end: (bin + 1) / BINS, matches: count }));
}

function reliability(judged) {
  const bins = Array.from({ length: 10 }, () => ({ sum: 0, right: 0, all: 0 }));
  for (const [prob, isRight] of judged.matches) {
    const bin = bins[Math.min(9, Math.floor(prob * 10))];
    bin.sum += prob; bin.right += isRight; bin.all += 1;
  }
  return bins.filter((bin) => bin.all).map((bin) => {
    const [low, high] = interval(bin.right, bin.all);
    return { probability: bin.sum / bin.all, right: bin.right / bin.all, low, high, links: bin.all };
  });
}

function curve(judged) {
  const rows = [];
  for (let step = 0; step <= STEPS; step++) {
    const threshold = step / STEPS, found = countsAt(judged, threshold);
    const [low, high] = found.interval;
    if (found.taken) rows.push({ threshold, value: found.precision, low, high, curve: "precision" });
    rows.push({ threshold, value: found.recall, curve: "recall" });
  }
  return rows;
}

// the threshold is a parameter of the charts, so that the slider moves their line
function chart(title, subtitle, layers, config, threshold) {
  const rule = { data: { values: [{}] }, mark: { type: "rule", color: "#1c2128", strokeDash: [4, 3] }, encoding: { x: { datum: { expr: "threshold" }, type: "quantitative" } } };
  return {
    $schema: "https://vega.github.io/schema/vega-lite/v6.json", config, width: Math.min(310, innerWidth - 130), height: 130,
    title: { text: title, subtitle }, params: [{ name: "threshold", value: threshold }],
    layer: threshold === null ? layers : [...layers, rule],
  };
}

function chartSpecs(matches, judged, config, colours, threshold) {
  const axis = (field, title) => ({ field, title, type: "quantitative", scale: { domain: [0, 1] } });
  const bars = { data: { values: histogram(matches) }, mark: { type: "bar", binSpacing: 0 }, encoding: {
    x: { ...axis("start", "probability"), bin: { binned: true } }, x2: { field: "end" },
    y: { field: "matches", type: "quantitative", title: "matches" },
    tooltip: [{ field: "start" }, { field: "end" }, { field: "matches" }],
    color: { condition: { test: "datum.end > threshold", value: colours[0] }, value: "#c3cad3" } } };
  const specs = [chart("Probabilities", "all matches without given links; blue: accepted", [bars], config, threshold)];
  if (!judged) return specs;
  const subtitle = `${judged.size.toLocaleString("en")} ${judged.name}`;
  const points = reliability(judged), lines = curve(judged);
  const x = axis("probability", "stated probability");
  specs.push(chart("Reliability", `${subtitle}; dashed: as stated`, [
    { data: { values: [{ probability: 0, right: 0 }, { probability: 1, right: 1 }] }, mark: { type: "line", strokeDash: [5, 4], color: "#8a929c" }, encoding: { x, y: axis("right", "share that is right") } },
    { data: { values: points }, mark: { type: "rule", color: colours[0] }, encoding: { x, y: axis("low", "share that is right"), y2: { field: "high" } } },
    { data: { values: points }, mark: { type: "line", point: true, color: colours[0] }, encoding: { x, y: axis("right", "share that is right"),
      tooltip: [{ field: "probability", format: ".2f" }, { field: "right", format: ".2f" }, { field: "links" }] } },
  ], config, null));
  const by = { field: "curve", type: "nominal", title: null, scale: { domain: ["precision", "recall"], range: colours.slice(0, 2) } };
  specs.push(chart("Precision and recall by threshold", `${subtitle}; band: 95% interval of the precision`, [
    { data: { values: lines.filter((one) => one.curve === "precision") }, mark: { type: "area", opacity: 0.2, color: colours[0] }, encoding: { x: axis("threshold", "threshold"), y: axis("low", "share"), y2: { field: "high" } } },
    { data: { values: lines }, mark: "line", encoding: { x: axis("threshold", "threshold"), y: axis("value", "share"), color: by,
      tooltip: [{ field: "curve" }, { field: "threshold", format: ".2f" }, { field: "value", format: ".3f" }] } },
  ], config, threshold));
  return specs;
}

// the page's security policy forbids generated code and injected styles
const CHART_OPTIONS = { actions: false, renderer: "svg", ast: true, defaultStyle: false, tooltip: { disableDefaultStyle: true } };

async function drawCharts(place, specs) {
  const views = [];
  for (const spec of specs) {
    const figure = document.createElement("figure");
    figure.className = "chart";
    const canvas = document.createElement("div");
    figure.append(canvas);
    place.append(figure);
    try {
      views.push((await window.vegaEmbed(canvas, spec, CHART_OPTIONS)).view);
    } catch (error) {
      canvas.textContent = `The chart cannot be drawn: ${error.message}`;
    }
  }
  return views;
}
