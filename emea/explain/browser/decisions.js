// What a person decided: accepted links and rejected pairs, kept by the browser and saved as files.

// a tab or a line break would end a cell of the file
const cell = (name) => name.replaceAll("\t", "\\t").replaceAll("\n", "\\n").replaceAll("\r", "\\r");

class Decisions {
  // several: whether a source entity may have several targets, and a target several sources
  constructor(key, known, several, source, target) {
    this.key = `emea-review-${key}`;
    this.known = known;
    this.several = several;
    this.source = source;
    this.target = target;
    this.accepted = new Map(); // source -> Set of targets
    this.rejected = new Map(); // source -> Set of targets
    this.listeners = [];
    this._restore();
  }

  accept(source, target) {
    const before = this.several[0] ? this.accepted.get(source) ?? [] : [];
    this.accepted.set(source, new Set([...before, target]));
    this.rejected.get(source)?.delete(target);
    this._changed();
  }

  reject(source, targets) {
    this.rejected.set(source, new Set([...(this.rejected.get(source) ?? []), ...targets]));
    targets.forEach((target) => this.accepted.get(source)?.delete(target));
    this._changed();
  }

  clear(source) {
    this.accepted.delete(source);
    this.rejected.delete(source);
    this._changed();
  }

  acceptedOf(source) {
    return [...(this.accepted.get(source) ?? [])];
  }

  isDecided(source) {
    return this.acceptedOf(source).length > 0 || (this.rejected.get(source)?.size ?? 0) > 0;
  }

  // accepted, rejected or null
  about(source, target) {
    if (this.accepted.get(source)?.has(target)) return "accepted";
    return this.rejected.get(source)?.has(target) ? "rejected" : null;
  }

  pairs(decided) {
    return [...decided].flatMap(([source, targets]) =>
      [...targets].map((target) => [source, target]));
  }

  // the first target with two links where a target may have one only, or null
  repeatedTarget() {
    if (this.several[1]) return null;
    const owners = new Map(this.known.map(([source, target]) => [target, source]));
    for (const [source, target] of this.pairs(this.accepted)) {
      if (owners.has(target) && owners.get(target) !== source) return target;
      owners.set(target, source);
    }
    return null;
  }

  contradicts([source, target]) {
    const accepted = this.acceptedOf(source);
    return this.about(source, target) === "rejected"
      || (!this.several[0] && accepted.length > 0 && !accepted.includes(target));
  }

  // the first source entity whose known link a decision contradicts, or null
  changedLink() {
    return this.known.find((link) => this.contradicts(link))?.[0] ?? null;
  }

  // known links that a decision contradicts; an update must take them back
  takenBackRows() {
    return this.known.filter((link) => this.contradicts(link)).map((pair) => this._row(pair));
  }

  // a decision replaces the known link of its entity
  linkRows(withKnown) {
    const isNew = ([source, target]) => this.about(source, target) !== "accepted";
    const known = withKnown ? this.known.filter((link) => !this.contradicts(link) && isNew(link))
      : [];
    return [...known, ...this.pairs(this.accepted)].map((pair) => this._row(pair));
  }

  rejectedRows() {
    return this.pairs(this.rejected).map((pair) => this._row(pair));
  }

  _row([source, target]) {
    return `${cell(this.source.names[source])}\t${cell(this.target.names[target])}`;
  }

  _changed() {
    const state = { accepted: this.pairs(this.accepted), rejected: this.pairs(this.rejected) };
    try {
      localStorage.setItem(this.key, JSON.stringify(state));
    } catch { /* not allowed for pages on disk */ }
    this.listeners.forEach((listener) => listener());
  }

  _restore() {
    try {
      const state = JSON.parse(localStorage.getItem(this.key));
      for (const decided of ["accepted", "rejected"]) {
        for (const [source, target] of state[decided]) {
          if (source >= this.source.numEntities || target >= this.target.numEntities) continue;
          this[decided].set(source, new Set([...(this[decided].get(source) ?? []), target]));
        }
      }
    } catch { /* nothing kept, or not allowed */ }
  }
}

function saveFile(name, rows) {
  const blob = new Blob([`${["source\ttarget", ...rows].join("\n")}\n`],
    { type: "text/tab-separated-values" });
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
