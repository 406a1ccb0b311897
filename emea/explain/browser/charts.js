// Counts at a threshold, and the three charts that show them, drawn as SVG.

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
  for (const [source, target] of links) {
    targets.set(source, [...(targets.get(source) ?? []), target]);
  }
  const found = [];
  for (const [source, right] of targets) {
    for (const row of matches.rowsOf.get(source) ?? []) {
      if (matches.targets[row] >= 0) {
        found.push([matches.probs[row], right.includes(matches.targets[row])]);
      }
    }
  }
  return found.sort((a, b) => b[0] - a[0]);
}

function countsAt(judged, threshold) {
  const taken = judged.matches.filter(([prob]) => prob >= threshold);
  const right = taken.filter(([, isRight]) => isRight).length;
  return { taken: taken.length, right, precision: taken.length ? right / taken.length : null,
    interval: interval(right, taken.length), recall: right / judged.size,
      recallInterval: interval(right, judged.size) };
}

function histogram(matches) {
  const counts = new Array(BINS).fill(0);
  matches.probs.forEach((prob, row) => {
    const bin = Math.min(BINS - 1, Math.floor(prob * BINS));
    if (matches.targets[row] >= 0 && !matches.given[row]) counts[bin]++;
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
    return { probability: bin.sum / bin.all, right: bin.right / bin.all, low, high,
      links: bin.all };
  });
}

function curve(judged) {
  const rows = [];
  for (let step = 0; step <= STEPS; step++) {
    const threshold = step / STEPS, found = countsAt(judged, threshold);
    const [low, high] = found.interval;
    if (found.taken) {
      rows.push({ threshold, value: found.precision, low, high, curve: "precision" });
    }
    rows.push({ threshold, value: found.recall, curve: "recall" });
  }
  return rows;
}

// Draws charts as SVG. Texts and lines have the colours of the page, in light and in dark mode.

const WIDTH = 300, HEIGHT = 130;
const EDGES = { left: 50, right: 10, top: 42, bottom: 40 };
const NUM_TICKS = 5;

const short = (value, digits) => value.toFixed(digits);

// round numbers from 0 to at least `most`, about five of them
function niceTicks(most) {
  const rough = Math.max(most, 1) / NUM_TICKS, power = 10 ** Math.floor(Math.log10(rough));
  const step = Math.max(1, [1, 2, 5, 10].find((factor) => factor * power >= rough) * power);
  return Array.from({ length: Math.ceil(Math.max(most, 1) / step) + 1 },
    (_, index) => index * step);
}

const SHARES = [0, 0.2, 0.4, 0.6, 0.8, 1];

// A plot: its frame, both axes, and functions from values to pixels. x and the threshold are from
// 0 to 1.
class Plot {
  constructor(title, subtitle, xTitle, yTitle, yTicks) {
    this.width = Math.max(120, Math.min(WIDTH, innerWidth - 130));
    this.most = yTicks.at(-1);
    const full = { width: this.width + EDGES.left + EDGES.right,
      height: HEIGHT + EDGES.top + EDGES.bottom };
    this.node = svg("svg", { ...full, viewBox: `0 0 ${full.width} ${full.height}`, role: "img",
      "aria-label": `${title}: ${subtitle}` });
    this.area = svg("g", { transform: `translate(${EDGES.left},${EDGES.top})` });
    this.node.append(
      svg("text", { x: 4, y: 15, class: "title" }, title),
      svg("text", { x: 4, y: 31, class: "subtitle" }, subtitle),
      this.area,
    );
    this.axes(xTitle, yTitle, yTicks);
    this.line = null;
  }

  x(value) { return value * this.width; }
  y(value) { return HEIGHT * (1 - value / this.most); }

  axes(xTitle, yTitle, yTicks) {
    for (const value of SHARES) {
      const at = this.x(value);
      this.draw("line", { class: "gridline", x1: at, x2: at, y1: 0, y2: HEIGHT });
      this.draw("line", { class: "axis", x1: at, x2: at, y1: HEIGHT, y2: HEIGHT + 5 });
      this.draw("text", { class: "tick", x: at, y: HEIGHT + 17, "text-anchor": "middle" },
        short(value, 1));
    }
    for (const value of yTicks) {
      const at = this.y(value);
      this.draw("line", { class: "gridline", x1: 0, x2: this.width, y1: at, y2: at });
      this.draw("line", { class: "axis", x1: -5, x2: 0, y1: at, y2: at });
      const text = this.most === 1 && yTicks === SHARES ? short(value, 1)
        : value.toLocaleString("en");
      this.draw("text", { class: "tick", x: -8, y: at + 4, "text-anchor": "end" }, text);
    }
    this.draw("line", { class: "axis", x1: 0, x2: this.width, y1: HEIGHT, y2: HEIGHT });
    this.draw("line", { class: "axis", x1: 0, x2: 0, y1: 0, y2: HEIGHT });
    this.draw("text", { class: "name", x: this.width / 2, y: HEIGHT + 34, "text-anchor": "middle" },
      xTitle);
    const middle = -HEIGHT / 2;
    this.draw("text", { class: "name", x: middle, y: 14 - EDGES.left, transform: "rotate(-90)",
      "text-anchor": "middle" }, yTitle);
  }

  // adds a shape, with what is shown when the pointer is on it
  draw(name, attributes, text = null, tooltip = null) {
    const drawn = svg(name, attributes);
    if (text !== null) drawn.append(text);
    if (tooltip !== null) drawn.append(svg("title", {}, tooltip));
    this.area.append(drawn);
    return drawn;
  }

  // a line through [[x, y]], with a tooltip on each point; a radius of 0 hides the points
  path(points, attributes, tooltips, radius) {
    if (!points.length) return;
    const places = points.map(([x, y]) => `${short(this.x(x), 2)},${short(this.y(y), 2)}`);
    this.draw("polyline", { points: places.join(" "), fill: "none", "stroke-width": 2,
      ...attributes });
    points.forEach(([x, y], index) => {
      const at = { cx: this.x(x), cy: this.y(y) };
      if (radius) this.draw("circle", { ...at, r: radius, fill: attributes.stroke });
      this.draw("circle", { ...at, r: 6, fill: "transparent" }, null, tooltips[index]);
    });
  }

  // the legend, next to the name of the horizontal axis: [[name, colour]]
  legend(entries) {
    let at = this.width / 2 + 34;
    for (const [name, colour] of entries) {
      this.draw("line", { x1: at, x2: at + 12, y1: HEIGHT + 30, y2: HEIGHT + 30, stroke: colour,
        "stroke-width": 3 });
      this.draw("text", { class: "tick", x: at + 16, y: HEIGHT + 34 }, name);
      at += 68;
    }
  }

  // a vertical line that the slider moves
  showThreshold(threshold) {
    if (threshold === null) return;
    const at = this.x(threshold);
    this.line ??= this.draw("line", { class: "threshold-line", y1: 0, y2: HEIGHT });
    this.line.setAttribute("x1", at);
    this.line.setAttribute("x2", at);
  }
}

// each chart has a node and a method that shows another threshold
function probabilityChart(matches, colours) {
  const bins = histogram(matches);
  const most = Math.max(...bins.map((bin) => bin.matches));
  const plot = new Plot("Probabilities", "all matches without given links; blue: accepted",
    "probability", "matches", niceTicks(most));
  const bars = bins.filter((bin) => bin.matches).map((bin) => {
    const x = plot.x(bin.start), y = plot.y(bin.matches);
    const size = { width: plot.x(bin.end) - x, height: HEIGHT - y };
    const tooltip = `${short(bin.start, 2)} to ${short(bin.end, 2)}: ${bin.matches.toLocaleString("en")} matches`;
    return [bin, plot.draw("rect", { x, y, ...size }, null, tooltip)];
  });
  const show = (threshold) => {
    for (const [bin, bar] of bars) {
      if (bin.end > threshold) bar.setAttribute("fill", colours[0]);
      else bar.setAttribute("fill", "#c3cad3");
    }
    plot.showThreshold(threshold);
  };
  return { node: plot.node, show };
}

function reliabilityChart(judged, colours) {
  const subtitle = `${judged.size.toLocaleString("en")} ${judged.name}; dashed: as stated`;
  const plot = new Plot("Reliability", subtitle, "stated probability", "share that is right",
    SHARES);
  plot.draw("line", { class: "reference", x1: plot.x(0), y1: plot.y(0), x2: plot.x(1),
    y2: plot.y(1) });
  const points = reliability(judged);
  for (const { probability, low, high } of points) {
    const at = plot.x(probability);
    plot.draw("line", { x1: at, x2: at, y1: plot.y(low), y2: plot.y(high), stroke: colours[0] });
  }
  const tooltips = points.map((one) =>
    `stated ${short(one.probability, 2)}, right ${short(one.right, 2)} of ${one.links.toLocaleString("en")} links`);
  plot.path(points.map((one) => [one.probability, one.right]), { stroke: colours[0] }, tooltips, 3);
  return { node: plot.node, show: () => {} };
}

function curveChart(judged, colours) {
  const subtitle = `${judged.size.toLocaleString("en")} ${judged.name}; band: 95% interval of the precision`;
  const plot = new Plot("Precision and recall by threshold", subtitle, "threshold", "share",
    SHARES);
  const rows = curve(judged), names = ["precision", "recall"];
  const band = rows.filter((row) => row.curve === "precision");
  const upper = band.map((row) => [row.threshold, row.high]),
    lower = band.map((row) => [row.threshold, row.low]);
  const corners = [...upper, ...lower.reverse()].map(([x, y]) =>
    `${short(plot.x(x), 2)},${short(plot.y(y), 2)}`);
  plot.draw("polygon", { points: corners.join(" "), fill: colours[0], opacity: 0.2 });
  names.forEach((name, index) => {
    const own = rows.filter((row) => row.curve === name);
    const tooltips = own.map((row) =>
      `${name} ${short(row.value, 3)} at threshold ${short(row.threshold, 2)}`);
    plot.path(own.map((row) => [row.threshold, row.value]), { stroke: colours[index] }, tooltips,
      0);
  });
  plot.legend(names.map((name, index) => [name, colours[index]]));
  return { node: plot.node, show: (threshold) => plot.showThreshold(threshold) };
}

function drawCharts(place, matches, judged, colours, threshold) {
  const charts = [probabilityChart(matches, colours)];
  if (judged) charts.push(reliabilityChart(judged, colours), curveChart(judged, colours));
  for (const chart of charts) {
    const figure = document.createElement("figure");
    figure.className = "chart";
    figure.append(chart.node);
    place.append(figure);
    chart.show(threshold);
  }
  return charts;
}
