// The table of all rows. Only the visible ones are elements of the page, so that 100,000 are fast.

const ROW_HEIGHT = 34;
const MARGIN = 8; // rows drawn above and below the visible ones
const UNSURE = [0.1, 0.9];

const FILTERS = {
  all: () => true,
  matched: (one, row) => one.accepted(row),
  unmatched: (one, row) => !one.accepted(row),
  unsure: (one, row) => !one.matches.given[row] && one.matches.bestProbs[row] >= UNSURE[0]
    && one.matches.bestProbs[row] < UNSURE[1],
  given: (one, row) => one.matches.given[row] === 1,
  conflicts: (one, row) => one.accepted(row) && one.claimed.get(one.matches.targets[row]) > 1,
  decided: (one, row) => one.decisions.isDecided(one.matches.sources[row]),
  suggested: (one, row) => one.matches.place.has(one.matches.sources[row]),
};

const ORDERS = { name: "source", probability: "probability", file: "file" };

const number = (value) => (value > 0 && value < 0.0005 ? "<0.001" : value < 1 && value >= 0.9995
  ? ">0.999" : value.toFixed(3));

function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name in made) made[name] = value;
    else made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

class Table {
  constructor(place, matches, decisions, columns) {
    this.matches = matches;
    this.decisions = decisions;
    this.columns = columns; // [key, title]
    this.threshold = 0;
    this.query = [];
    this.filter = "all";
    this.sort = null; // [column, 1 or -1]; null: the order of the page
    this.order = "name"; // of the page: name, probability or file
    this.isBlind = false;
    this.selected = -1; // a row of the matches
    this.rows = [];
    this.onselect = () => {};
    this._build(place);
  }

  accepted(row) {
    return this.matches.accepted(row, this.threshold);
  }

  // the accepted source entities of each target
  count() {
    this.claimed = new Map();
    for (let row = 0; row < this.matches.size; row++) {
      const target = this.matches.targets[row];
      if (this.accepted(row)) this.claimed.set(target, (this.claimed.get(target) ?? 0) + 1);
    }
  }

  counts() {
    const found = {};
    for (const [name, fits] of Object.entries(FILTERS)) {
      found[name] = 0;
      for (let row = 0; row < this.matches.size; row++) found[name] += fits(this, row);
    }
    return found;
  }

  update() {
    this.count();
    const fits = FILTERS[this.filter];
    const found = [];
    for (let row = 0; row < this.matches.size; row++) {
      const isFound = fits(this, row) && this.query.every((word) => this.matches.has(row, word));
      if (isFound) found.push(row);
    }
    this.rows = this._sorted(found);
    this.body.style.height = `${this.rows.length * ROW_HEIGHT}px`;
    this.frame.setAttribute("aria-rowcount", this.rows.length + 1);
    this.empty.hidden = this.rows.length > 0;
    this.draw();
  }

  _sorted(rows) {
    const { place, sources } = this.matches;
    const [key, sign] = this.sort ?? [ORDERS[this.order], this.order === "probability" ? -1 : 1];
    const values = this._keys(key);
    const byValue = (a, b) => (values[a] < values[b] ? -sign : values[a] > values[b] ? sign
      : a - b);
    if (this.sort || !place.size) return rows.sort(byValue);
    // suggestions come in their own order, before all other rows
    const position = (row) => place.get(sources[row]) ?? place.size;
    return rows.sort((a, b) => position(a) - position(b) || byValue(a, b));
  }

  _keys(key) {
    const { matches } = this;
    if (key === "source") return (this._names ??= matches.sources.map((one) =>
      matches.source.short(one).toLowerCase()));
    if (key === "file") return matches.sources.map((one) => matches.source.fileOrder[one]);
    if (key === "target") return matches.best.map((one) =>
      (one < 0 ? "\uffff" : matches.target.short(one).toLowerCase()));
    if (key === "probability") return matches.bestProbs;
    if (key === "runner") return matches.runners.map((one) => one?.[1] ?? 0);
    if (key === "witnesses") return matches.witnesses;
    return matches.sources.map((one) => (this.decisions.isDecided(one) ? 0 : 1));
  }

  draw() {
    const top = this.frame.scrollTop;
    const first = Math.max(0, Math.floor(top / ROW_HEIGHT) - MARGIN);
    const last = Math.min(this.rows.length, Math.ceil(
      (top + this.frame.clientHeight) / ROW_HEIGHT) + MARGIN);
    const shown = [];
    for (let place = first; place < last; place++) shown.push(this._row(place));
    this.body.replaceChildren(...shown);
  }

  _row(place) {
    const row = this.rows[place];
    const made = element("div", { className: "row", role: "row", id: `row${place}`,
      "aria-rowindex": place + 2, "aria-selected": row === this.selected });
    made.dataset.row = row;
    made.style.top = `${place * ROW_HEIGHT}px`;
    for (const [key] of this.columns) made.append(this._cell(key, row));
    return made;
  }

  _cell(key, row) {
    const { matches } = this;
    const source = matches.sources[row], best = matches.best[row], runner = matches.runners[row];
    const isHidden = this.isBlind && !this.decisions.isDecided(source);
    const made = element("div", { className: `cell ${key}`, role: "gridcell" });
    if (key === "source") this._name(made, matches.source, source);
    else if (key === "decision") made.append(this._decision(row));
    else if (isHidden) made.append(element("span", { className: "dim" }, "hidden"));
    else if (key === "target" && best >= 0) {
      this._name(made, matches.target, best);
      if (!this.accepted(row)) made.classList.add("refused");
    } else if (key === "probability") {
      made.textContent = best < 0 ? "–" : number(matches.bestProbs[row]);
    } else if (key === "runner" && runner) {
      this._name(made, matches.target, runner[0]);
      made.append(element("span", { className: "dim" }, ` ${number(runner[1])}`));
    } else if (key === "witnesses") {
      const isMatched = matches.targets[row] >= 0;
      made.textContent = isMatched ? `${matches.witnesses[row]} of ${matches.numWitnesses}` : "";
    }
    else if (key === "target") made.append(element("span", { className: "dim" }, "no candidate"));
    return made;
  }

  _name(place, graph, node) {
    place.append(element("span", { className: "name", title: graph.names[node] },
      graph.short(node)));
    const found = this.query.length ? graph.foundLabel(node, this.query) : null;
    if (found) place.append(element("span", { className: "dim found" }, ` (found: ${found})`));
  }

  _decision(row) {
    const { matches, decisions } = this;
    const source = matches.sources[row], badge = (kind, text) =>
      element("span", { className: `badge ${kind}` }, text);
    const accepted = decisions.acceptedOf(source);
    if (accepted.includes(matches.best[row])) return badge("good", "accepted");
    if (accepted.length) return badge("good",
      `→ ${accepted.map((one) => matches.target.short(one)).join(", ")}`);
    if (decisions.isDecided(source)) return badge("bad",
      decisions.about(source, matches.best[row]) === "rejected" ? "rejected" : "others rejected");
    if (matches.given[row]) return badge("none", "given");
    if (this.isBlind) return badge("none", "open");
    if (!this.accepted(row)) return badge("none", "no match");
    return this.claimed.get(matches.targets[row]) > 1 ? badge("bad", "conflict") : "";
  }

  // arrow keys move the selection; scrolls only if the row is not visible
  move(place) {
    if (!this.rows.length) return;
    const wanted = Math.max(0, Math.min(this.rows.length - 1, place));
    const top = wanted * ROW_HEIGHT, height = this.frame.clientHeight - this.head.offsetHeight;
    if (top < this.frame.scrollTop) this.frame.scrollTop = top;
    const end = top + ROW_HEIGHT;
    if (end > this.frame.scrollTop + height) this.frame.scrollTop = end - height;
    this.select(this.rows[wanted]);
  }

  select(row) {
    this.selected = row;
    this.draw();
    this.frame.setAttribute("aria-activedescendant", `row${this.rows.indexOf(row)}`);
    this.onselect(row);
  }

  _build(place) {
    const head = element("div", { className: "head", role: "row", "aria-rowindex": 1 });
    for (const [key, title] of this.columns) {
      const button = element("button", { type: "button" }, title);
      const cell = element("div", { className: `cell ${key}`, role: "columnheader" }, button);
      button.addEventListener("click", () => this._sortBy(key, cell, head));
      head.append(cell);
    }
    this.body = element("div", { className: "rows", role: "rowgroup" });
    this.empty = element("p", { className: "dim empty", hidden: true }, "No rows fit.");
    this.frame = element("div", { className: "frame grid", role: "grid", tabIndex: 0,
      "aria-label": "Matches" }, head, this.body, this.empty);
    this.head = head;
    if (this.columns.some(([key]) => key === "witnesses")) this.frame.classList.add(
      "with-witnesses");
    place.append(this.frame);
    let isPlanned = false;
    this.frame.addEventListener("scroll", () => {
      if (isPlanned) return;
      isPlanned = true;
      requestAnimationFrame(() => { isPlanned = false; this.draw(); });
    });
    new ResizeObserver(() => this.draw()).observe(this.frame);
    this.body.addEventListener("click", (event) => {
      const row = event.target.closest(".row");
      if (row) this.select(Number(row.dataset.row));
    });
    this.frame.addEventListener("keydown", (event) => this._key(event));
  }

  _sortBy(key, cell, head) {
    const before = this.sort?.[0] === key ? this.sort[1] : 0;
    const first = ["probability", "witnesses", "runner"].includes(key) ? -1 : 1;
    this.sort = before === 0 ? [key, first] : before === first ? [key, -first] : null;
    for (const other of head.children) other.removeAttribute("aria-sort");
    if (this.sort) cell.setAttribute("aria-sort", this.sort[1] > 0 ? "ascending" : "descending");
    this.frame.scrollTop = 0;
    this.update();
  }

  // back to the order of the page
  unsort() {
    this.sort = null;
    for (const cell of this.head.children) cell.removeAttribute("aria-sort");
    this.frame.scrollTop = 0;
    this.update();
  }

  _key(event) {
    const page = Math.max(1, Math.floor(this.frame.clientHeight / ROW_HEIGHT) - 1);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity,
      End: Infinity };
    const step = steps[event.key];
    if (step === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    this.move(this.rows.indexOf(this.selected) + step);
  }
}
