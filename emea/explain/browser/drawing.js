// Draws the neighbourhoods of a pair: lines connect neighbours that are believed to match.

const DRAWN = 12; // neighbours per side
const SIZE = { width: 1160, end: 150, node: 172, label: 148, curve: 40, row: 46, top: 28, box: 30 };
const CELLS = { node: 22, relation: 19, end: 17, lines: 3 };
const CAPTION = "Lines connect neighbours that are believed to match. Their width and number show the share of the evidence. Bold frames mark given links, dashed frames mark neighbours that do not support the pair. Arrows show the direction of a relation.";

// the width of a text in cells; a Chinese character takes two
const isWide = (character) =>
  /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]/.test(character);
const cells = (text) => [...text].reduce((sum, character) => sum + (isWide(character) ? 2 : 1), 0);

function cut(text, most) {
  if (cells(text) <= most) return text;
  let kept = "";
  for (const character of text) {
    if (cells(kept + character) > most - 1) break;
    kept += character;
  }
  return `${kept.trimEnd()}…`;
}

function lines(name) {
  const found = [""];
  for (const word of name.replaceAll("_", "_ ").split(/\s+/).filter(Boolean)) {
    for (const character of word) {
      if (cells(found.at(-1) + character) > CELLS.end) found.push("");
      found[found.length - 1] += character;
    }
    if (cells(found.at(-1)) > CELLS.end - 5) found.push("");
  }
  const kept = found.filter(Boolean);
  return kept.length <= CELLS.lines ? kept : [...kept.slice(0, CELLS.lines - 1),
    cut(`${kept[CELLS.lines - 1]}……`, CELLS.end)];
}

function svg(tag, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

// supporting neighbours by their evidence, then the others: [node, relations, supports, isLabel]
function drawnSide(evidence, side, entity, partner, groups) {
  const key = side === 0 ? "neighbour" : "counterpart", path = side === 0 ? "relation" : "other";
  const supporters = new Map();
  for (const group of groups) {
    if (!supporters.has(group[key])) {
      const none = { relations: [], supports: true, isLabel: false, share: 0 };
      supporters.set(group[key], { node: group[key], ...none });
    }
    const one = supporters.get(group[key]);
    one.share += group.share;
    one.isLabel ||= group.isLabel;
    for (const piece of group.paths) {
      if (!one.relations.includes(piece[path])) one.relations.push(piece[path]);
    }
  }
  const silent = evidence.silent(side, entity, partner, new Set(supporters.keys()));
  return [...[...supporters.values()].sort((a, b) => b.share - a.share),
    ...silent.map((one) => ({ ...one, supports: false }))];
}

function arrow(graph, relations, isMirrored) {
  const rest = relations.length > 1 ? ` +${relations.length - 1}` : "";
  const [first] = relations, number = graph.relations.length;
  const name = cut(localName(graph.relations[first % number]), CELLS.relation - rest.length);
  // on the right side, an outgoing relation points to the left
  return (first >= number) !== isMirrored ? `← ${name}${rest}` : `${name}${rest} →`;
}

function drawing(page, source, target) {
  const { groups } = page.evidence.support(source, target);
  const all = [drawnSide(page.evidence, 0, source, target, groups),
    drawnSide(page.evidence, 1, target, source, groups)];
  const left = all[0].slice(0, DRAWN), place = new Map(left.map((one, index) => [one.node, index]));
  const nearest = new Map();
  for (const group of groups) {
    const isFirst = place.has(group.neighbour) && !nearest.has(group.counterpart);
    if (isFirst) nearest.set(group.counterpart, place.get(group.neighbour));
  }
  const order = (one) => nearest.get(one.node) ?? left.length;
  const right = all[1].slice(0, DRAWN).sort((a, b) => order(a) - order(b));
  const rightPlace = new Map(right.map((one, index) => [one.node, index]));
  const links = groups.filter((group) => place.has(group.neighbour)
    && rightPlace.has(group.counterpart))
    .map((group) => ({ ...group, from: place.get(group.neighbour),
      to: rightPlace.get(group.counterpart) }));

  const { width, end, node, label, curve, row, top, box } = SIZE;
  const numRows = Math.max(left.length, right.length, 1), bottom = top + numRows * row;
  const middle = bottom - (numRows * row) / 2 - (row - box) / 2;
  const inner = end + curve + label, outer = width - inner - node;
  const centre = (index) => top + index * row + box / 2;
  const picture = svg("svg", { class: "neighbourhood", role: "img",
    viewBox: `0 0 ${width} ${bottom + 24}` },
    svg("title", {},
      `Neighbours of ${page.source.short(source)} (left) and ${page.target.short(target)} (right)`));
  const sides = [[left, page.source, false, inner], [right, page.target, true, outer]];
  for (const [shown, graph, isMirrored] of sides) {
    shown.forEach((one, index) => {
      const y = centre(index), [start, bend] = isMirrored ? [width - end, width - end - curve / 2]
        : [end, end + curve / 2];
      const [straight, stop] = isMirrored ? [width - end - curve, width - inner]
        : [end + curve, inner];
      picture.append(svg("path", { class: `edge${one.supports ? "" : " silent"}`,
        d: `M${start} ${middle}C${bend} ${middle} ${bend} ${y} ${straight} ${y}H${stop}` }));
      picture.append(svg("text", { class: "relation", x: (straight + stop) / 2, y: y - 5 },
        svg("title", {}, one.relations.map((relation) => graph.relation(relation)).join(", ")),
        arrow(graph, one.relations, isMirrored)));
    });
  }
  for (const link of links) {
    picture.append(svg("line", { class: "link", x1: inner + node, y1: centre(link.from), x2: outer,
      y2: centre(link.to), "stroke-width": (0.8 + 15.2 * link.share).toFixed(2) },
      svg("title", {}, `match ${number(link.prob)}, ${percent(link.share)} of the evidence`)));
  }
  for (const [shown, graph, , x] of sides) {
    shown.forEach((one, index) => picture.append(
      svg("g", { class: `node${one.isLabel ? " known" : ""}${one.supports ? "" : " silent"}` },
      svg("title", {}, graph.names[one.node]),
      svg("rect", { x, y: centre(index) - box / 2, width: node, height: box, rx: 6 }),
      svg("text", { x: x + node / 2, y: centre(index) + 4 },
        cut(graph.short(one.node), CELLS.node)))));
  }
  for (const link of links.filter((one) => one.share >= 0.02)) {
    picture.append(svg("text", { class: "share", x: (inner + node + outer) / 2,
      y: (centre(link.from) + centre(link.to)) / 2 + 4 }, percent(link.share)));
  }
  for (const [graph, entity, x] of [[page.source, source, 0], [page.target, target, width - end]]) {
    const text = lines(graph.short(entity)), height = 16 * text.length + 18;
    picture.append(svg("g", { class: "node end" }, svg("title", {}, graph.names[entity]),
      svg("rect", { x: x + 1, y: middle - height / 2, width: end - 2, height, rx: 8 }),
      ...text.map((line, index) => svg("text",
        { x: x + end / 2, y: middle - 8 * (text.length - 1) + 4 + 16 * index }, line))));
  }
  [[inner, all[0].length - left.length], [outer, all[1].length - right.length]].forEach(
    ([x, more]) => {
    if (more) picture.append(svg("text", { class: "relation", x: x + node / 2, y: bottom + 14 },
      `and ${more} more`));
  });
  return element("figure", {}, picture, element("figcaption", {}, CAPTION));
}

// the drawing is wide, so it has a window of its own
function showDrawing(page, source, target) {
  const window = element("dialog", { className: "drawing" });
  const close = element("button", { type: "button", className: "close",
    ariaLabel: "Close the drawing" }, "×");
  close.addEventListener("click", () => window.close());
  window.addEventListener("close", () => window.remove());
  window.append(close, drawing(page, source, target));
  document.body.append(window);
  window.showModal();
}
