// The explanation of a pair, next to the table, with the choices of a person.

const MOST = { neighbours: 12, silent: 8, values: 6, words: 8, relations: 30, options: 30,
  claims: 5 };
const percent = (share) => (share > 0 && share < 0.005 ? "<1%" : `${Math.round(100 * share)}%`);
const plural = (count, one, many = `${one}s`) =>
  `${count.toLocaleString("en")} ${count === 1 ? one : many}`;

class Pane {
  constructor(place, page) {
    this.place = place;
    // source, target, matches, evidence, decisions, table, command, search, asked
    Object.assign(this, page);
    this.entity = -1;
    this.shown = -1; // the target that is explained
  }

  get isHidden() {
    return this.table.isBlind && !this.decisions.isDecided(this.entity);
  }

  open(row) {
    this.entity = this.matches.sources[row];
    const chosen = this.decisions.acceptedOf(this.entity)[0]
      ?? this.asked.get(this.entity)?.[0].target;
    this.shown = this.isHidden ? -1 : chosen ?? this.matches.best[row];
    this.row = row;
    this.place.scrollTop = 0;
    this.draw();
  }

  explain(target) {
    this.shown = target;
    this.draw();
  }

  close() {
    this.entity = -1;
    this.place.hidden = true;
    document.body.classList.remove("with-pane");
  }

  draw() {
    if (this.entity < 0) return;
    this.place.hidden = false;
    document.body.classList.add("with-pane");
    const close = element("button", { type: "button", className: "close",
      ariaLabel: "Close the explanation" }, "×");
    close.addEventListener("click", () => { this.close(); this.table.frame.focus(); });
    const parts = [close, this._title(), ...this._choice()];
    if (this.shown >= 0 && this.evidence && !this.isHidden) parts.push(...this._explanation());
    parts.push(this._triples());
    this.place.replaceChildren(...parts);
  }

  _link(graph, node) {
    return element("span", { title: graph.names[node], className: "name" }, graph.short(node));
  }

  _title() {
    const title = element("h2", {}, this._link(this.source, this.entity));
    if (this.shown >= 0) title.append(" = ", this._link(this.target, this.shown));
    const reason = this.matches.reason.get(this.entity);
    const whole = element("div", {}, title, element("p", { className: "dim" },
      this.source.names[this.entity]));
    if (reason && !this.isHidden) whole.append(element("p", {}, reason));
    return whole;
  }

  // the candidates with their choices, and the search for another entity
  _choice() {
    const { matches, decisions } = this;
    const offered = matches.candidates(this.entity).map(([target, prob]) => [target, prob]);
    const rows = matches.rowsOf.get(this.entity).filter((row) => matches.targets[row] >= 0);
    const isOffered = (other) => offered.some(([target]) => target === other);
    for (const row of rows) {
      const target = matches.targets[row];
      if (!isOffered(target)) offered.unshift([target, matches.probs[row]]);
    }
    const others = [this.shown, ...decisions.acceptedOf(this.entity)];
    others.push(...(this.asked.get(this.entity) ?? []).map((one) => one.target));
    for (const other of others) {
      if (other >= 0 && !isOffered(other)) offered.push([other, null]);
    }
    if (this.isHidden) offered.sort((a, b) =>
      (this.target.short(a[0]) < this.target.short(b[0]) ? -1 : 1));
    const list = element("ul", { className: "candidates" },
      ...offered.map(([target, prob]) => this._candidate(target, prob)));
    const parts = [element("h3", {}, "Counterpart"),
      offered.length ? list : element("p", {}, "The run has no candidate for this entity.")];
    const buttons = element("p", { className: "buttons" });
    if (offered.length) buttons.append(this._button("None of these",
      () => decisions.reject(this.entity, offered.map(([target]) => target)), "n"));
    if (decisions.isDecided(this.entity)) buttons.append(
      this._button("Undo", () => decisions.clear(this.entity), "u"));
    return [...parts, buttons, this._completion()];
  }

  _candidate(target, prob) {
    const state = this.decisions.about(this.entity, target);
    const name = element("button", { type: "button", className: "candidate",
      title: this.target.names[target] }, this.target.short(target));
    name.setAttribute("aria-pressed", target === this.shown);
    name.addEventListener("click", () => this.explain(target));
    const shown = this.isHidden ? "" : prob === null ? "not a candidate" : number(prob);
    const made = element("li", {}, name, element("span", { className: "dim" }, shown));
    made.append(this._button("Accept", () => this.decisions.accept(this.entity, target), "",
      state === "accepted"));
    made.append(this._button("Reject", () => this.decisions.reject(this.entity, [target]), "",
      state === "rejected"));
    return made;
  }

  _button(title, action, key = "", isPressed = null) {
    const made = element("button", { type: "button" }, title);
    if (key) made.title = `Key: ${key}`;
    if (isPressed !== null) made.setAttribute("aria-pressed", isPressed);
    made.addEventListener("click", action);
    return made;
  }

  // only an entity of the list can be chosen, so that no other text is ever saved
  _completion() {
    const input = element("input", { type: "search", id: "other", autocomplete: "off",
      role: "combobox", placeholder: "type a part of its name" });
    const list = element("ul", { id: "options", role: "listbox", hidden: true });
    for (const [name, value] of [["aria-controls", "options"], ["aria-expanded", "false"],
      ["aria-autocomplete", "list"]]) input.setAttribute(name, value);
    let options = [], active = -1;
    const mark = (place) => {
      active = place;
      [...list.children].forEach((one, index) =>
        one.setAttribute("aria-selected", index === active));
      list.children[active]?.scrollIntoView({ block: "nearest" });
      input.setAttribute("aria-activedescendant", active < 0 ? "" : `option${active}`);
    };
    const choose = (place) => {
      if (options[place] === undefined) return;
      this.decisions.accept(this.entity, options[place]);
      this.explain(options[place]);
    };
    input.addEventListener("input", () => {
      options = this.search(input.value);
      list.replaceChildren(...options.map((target, place) => {
        const made = element("li", { role: "option", id: `option${place}`,
          title: this.target.names[target] }, this.target.short(target));
        made.addEventListener("mousedown", (event) => { event.preventDefault(); choose(place); });
        return made;
      }));
      if (input.value.trim() && !options.length) list.append(
        element("li", { className: "dim" }, "No entity of the target graph has this name."));
      list.hidden = !input.value.trim();
      input.setAttribute("aria-expanded", !list.hidden);
      mark(options.length ? 0 : -1);
    });
    input.addEventListener("keydown", (event) => {
      if (event.key === "ArrowDown") mark(Math.min(options.length - 1, active + 1));
      else if (event.key === "ArrowUp") mark(Math.max(0, active - 1));
      else if (event.key === "Enter") choose(active);
      else if (event.key === "Escape") { list.hidden = true; event.stopPropagation(); return; }
      else return;
      event.preventDefault();
    });
    input.addEventListener("blur", () => { list.hidden = true; });
    return element("div", { className: "completion" },
      element("label", { htmlFor: "other" }, "Another entity of the target graph"), input, list);
  }

  _explanation() {
    const { evidence } = this;
    const support = evidence.support(this.entity, this.shown);
    return [
      ...this._for(support),
      ...this._against(support),
      ...this._numbers(),
    ];
  }

  // the weighted features of a pair that was asked about; the command prints those of any pair
  _numbers() {
    const draw = this._button("Draw both neighbourhoods",
      () => showDrawing(this, this.entity, this.shown));
    const found = this.asked.get(this.entity)?.find((one) => one.target === this.shown);
    const command = `emea explain ${this.command.run} --numbers --pair ${quoted(this.source.names[this.entity])} ${quoted(this.target.names[this.shown])}`;
    if (!found) return [element("p", {}, draw),
      element("p", { className: "dim" }, "All numbers: ", element("code", {}, command))];
    const rows = [["", ...found.columns], ...found.rows].map((row) =>
      element("tr", {}, ...row.map((cell) => element("td", {}, cell))));
    const table = element("div", { className: "table" },
      element("table", {}, element("tbody", {}, ...rows)));
    const folded = element("details", {}, element("summary", {}, "Numbers"), table,
      element("p", { className: "dim" }, found.meanings));
    return [element("p", {}, draw), folded];
  }

  _for(support) {
    const { groups } = support;
    const parts = [element("h3", {}, "What speaks for it")];
    if (!this.evidence.used) parts.push(element("p", { className: "dim" },
      `Weighed by ${this.evidence.rule}. It had no influence on the result.`));
    if (!groups.length) return [...parts, element("p", {},
      "No neighbour and no value supports this pair.")];
    parts.push(
      element("p", {},
      `${plural(groups.length, "neighbour or value matches", "neighbours and values match")}. The percentage is the share of the evidence.`));
    parts.push(this._list(groups, MOST.neighbours, (group) => {
      const meter = element("meter", { min: 0, max: 1, value: group.share,
        ariaLabel: "share of the evidence" });
      const belief = group.isLabel ? "given link" : `match ${number(group.prob)}`;
      const [first, ...rest] = group.paths;
      const more = rest.length ? ` and ${plural(rest.length, "more relation")}` : "";
      if (this.source.isWords(first.relation)) return element("li", {},
        element("b", {}, percent(group.share)), " ", meter, ` ${this._shared()}`);
      const made = element("li", {}, element("b", {}, percent(group.share)), " ", meter, " ",
        this._link(this.source, group.neighbour), " = ", this._link(this.target, group.counterpart),
        element("span", { className: "dim" }, ` ${belief}`));
      made.append(element("div", { className: "dim",
        title: group.paths.map((path) => this._path(path)).join("\n") },
        `${this._path(first)}${more}`));
      return made;
    }));
    return parts;
  }

  // the words that both entities have in common, as a sentence
  _shared() {
    const theirs = new Set(this.target.words(this.shown));
    const words = this.source.words(this.entity).filter((word) => theirs.has(word));
    if (!words.length) return "Their values have similar words";
    const rest = words.length > MOST.words ? ` and ${words.length - MOST.words} more` : "";
    return `${plural(words.length, "word")} in common: ${words.slice(0, MOST.words).join(", ")}${rest}`;
  }

  _path(path) {
    return `${this.source.relation(path.relation)} corresponds to ${this.target.relation(path.other)}`;
  }

  _against(support) {
    const { evidence, matches } = this;
    const parts = [];
    const differences = evidence.differences(this.entity, this.shown);
    if (differences.length) {
      parts.push(
        element("p", {},
        "Values that differ, although the relations correspond and have one value each:"));
      parts.push(this._list(differences, MOST.silent, (one) => element("li", {},
        `${this.source.relation(one.relation)} `, ...this._names(this.source, one.nodes),
          ` but ${this.target.relation(one.other)} `, ...this._names(this.target, one.others))));
    }
    const claims = matches.claims(this.entity, this.shown).filter(([, prob]) => prob >= 0.01);
    if (claims.length) {
      const named = claims.slice(0, MOST.claims).flatMap(([source, prob], place) =>
        [place ? ", " : "", this._link(this.source, source), ` (${number(prob)})`]);
      const rest = claims.length > MOST.claims ? ` and ${claims.length - MOST.claims} more` : "";
      parts.push(element("p", {}, this._link(this.target, this.shown), " is also a candidate of ",
        ...named, rest, "."));
    }
    const sides = [[0, this.entity, this.shown, "neighbour"],
      [1, this.shown, this.entity, "counterpart"]];
    for (const [side, entity, partner, key] of sides) {
      const silent = evidence.silent(side, entity, partner,
        new Set(support.groups.map((group) => group[key])));
      if (!silent.length) continue;
      const [own, other] = side === 0 ? [this.source, this.target] : [this.target, this.source];
      const list = this._list(silent, MOST.silent, (one) => this._silent(own, other, one));
      parts.push(element("details", {}, element("summary", {},
        `${plural(silent.length, "neighbour")} of ${own.short(entity)} (${side === 0 ? "source" : "target"}) without a counterpart here`), list));
    }
    const runner = matches.candidates(this.entity).find(([target]) => target !== this.shown);
    if (runner) parts.push(this._rival(runner, support));
    return [element("h3", {}, "What speaks against it"),
      ...(parts.length ? parts : [element("p", {}, "Nothing that the graphs show.")])];
  }

  _silent(own, other, one) {
    const relations = one.relations.map((relation) => own.relation(relation)).join(", ");
    const made = element("li", {}, this._link(own, one.node),
      element("span", { className: "dim" }, ` (${relations}) `));
    if (one.believed < 0) made.append("has no match");
    else {
      const reason = one.isNear ? "which is near, but through other relations"
        : "which is not near the other entity";
      made.append("matches ", this._link(other, one.believed), ` (${number(one.prob)}), ${reason}`);
    }
    return made;
  }

  // what the next candidate has that this one lacks
  _rival([target, prob], support) {
    const theirs = this.evidence.support(this.entity, target);
    const mine = new Set(support.groups.map((group) => group.neighbour));
    const only = [...new Set(theirs.groups.map((group) => group.neighbour))].filter((node) =>
      !mine.has(node));
    const line = element("p", {}, "Next candidate: ", this._link(this.target, target),
      ` (${number(prob)}), supported by ${plural(theirs.groups.length, "pair")} of neighbours`);
    if (only.length) line.append(", of which only it has ", ...this._names(this.source, only));
    line.append(".");
    return line;
  }

  _names(graph, nodes) {
    const shown = nodes.slice(0, MOST.values).flatMap((node, place) =>
      [place ? ", " : "", this._link(graph, node)]);
    return nodes.length > MOST.values ? [...shown, ` and ${nodes.length - MOST.values} more`]
      : shown;
  }

  _list(items, most, render) {
    const list = element("ul", {}, ...items.slice(0, most).map(render));
    if (items.length > most) {
      const more = element("button", { type: "button" }, `${items.length - most} more`);
      more.addEventListener("click", () => more.parentElement.replaceWith(
        ...items.slice(most).map(render)));
      list.append(element("li", {}, more));
    }
    return list;
  }

  _triples() {
    const sides = [this._ownTriples(this.source, this.entity)];
    if (this.shown >= 0) sides.push(this._ownTriples(this.target, this.shown));
    return element("section", {}, element("h3", {}, "Their triples"),
      element("div", { className: "sides" }, ...sides));
  }

  _ownTriples(graph, entity) {
    const values = new Map();
    for (const [relation, node] of graph.edges(entity)) {
      if (graph.isWords(relation)) continue;
      const key = graph.relation(relation);
      values.set(key, [...(values.get(key) ?? []), this._link(graph, node)]);
    }
    for (const [attribute, value] of graph.literalsOf(entity)) {
      const key = `${attribute} →`;
      values.set(key, [...(values.get(key) ?? []), element("span", {}, `"${value}"`)]);
    }
    const rows = [...values].sort((a, b) => a[1].length - b[1].length);
    const list = this._list(rows, MOST.relations, ([relation, nodes]) => {
      const shown = nodes.slice(0, MOST.values).flatMap((node, place) => [place ? ", " : "", node]);
      const rest = nodes.length > MOST.values ? ` and ${nodes.length - MOST.values} more` : "";
      return element("li", {}, element("span", { className: "dim" }, `${relation} `), ...shown,
        rest);
    });
    const missing = graph.triples ? "No triples."
      : "The graphs are too large to be part of this page.";
    return element("div", {}, element("h4", {}, this._link(graph, entity)),
      rows.length ? list : element("p", { className: "dim" }, missing));
  }
}

// a name as one argument of a shell
const quoted = (name) => (/^[\w.,:/@%+=-]+$/.test(name) ? name
  : `'${name.replaceAll("'", "'\"'\"'")}'`);
