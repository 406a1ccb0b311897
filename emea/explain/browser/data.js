// The content of the page: entities, triples, matches and what is needed to explain them.

async function readContent(element) {
  const text = atob(element.textContent.trim());
  const bytes = new Uint8Array(text.length);
  for (let place = 0; place < text.length; place++) bytes[place] = text.charCodeAt(place);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).json();
}

// the last part of an IRI, such as Z for http://x.org/y/Z
function localName(name) {
  if (name.startsWith('"') || !name.includes("://")) return name;
  const last = name.replace(/[/#]+$/, "").split(/[/#]/).pop();
  if (!last.includes("%")) return last || name;
  try { return decodeURIComponent(last) || name; } catch { return last || name; }
}

// lists of different lengths in one array: the items of list i are between two of the starts
class Lists {
  constructor(starts, ...columns) {
    this.starts = starts;
    this.columns = columns;
  }

  // rows of columns, grouped by a key of each row
  static grouped(keys, size, ...columns) {
    const starts = new Int32Array(size + 1);
    for (const key of keys) starts[key + 1]++;
    for (let key = 0; key < size; key++) starts[key + 1] += starts[key];
    const next = starts.slice(0, size);
    const order = new Int32Array(keys.length);
    keys.forEach((key, place) => { order[next[key]++] = place; });
    return new Lists(starts, ...columns.map((column) =>
      Array.from(order, (place) => column[place])));
  }

  of(key) {
    const found = [];
    for (let place = this.starts[key]; place < this.starts[key + 1]; place++) {
      found.push(this.columns.map((column) => column[place]));
    }
    return found;
  }
}

const ALL_WORDS = "all words"; // the attribute whose values are all words of an entity

class Graph {
  constructor(content) {
    // names, labels, otherLabels, relations, numEntities, triples, literals, fileOrder
    Object.assign(this, content);
    this.numNodes = this.names.length; // literals that are evidence follow the entities
    this._shorts = new Array(this.numNodes);
    this._edges = new Map();
  }

  short(node) {
    this._shorts[node] ??= this.labels?.[node] || this.inWords(node);
    return this._shorts[node];
  }

  // the name of an entity as files have it if it has no label; values of literals stay unchanged
  inWords(node) {
    const name = this.names[node];
    const isWhole = node >= this.numEntities || name.startsWith("_:");
    return isWhole ? localName(name) : localName(name).replaceAll("_", " ").trim() || localName(name);
  }

  // further labels of an entity, such as those in other languages
  othersOf(node) {
    return this.otherLabels?.[node] ?? [];
  }

  searched(node) {
    const [short, local] = [this.short(node), localName(this.names[node])];
    return [short === local ? short : `${short} ${local}`, ...this.othersOf(node)].join(" ");
  }

  // the label that a search has found, if it is not the one that is shown
  foundLabel(node, words) {
    const shown = this.short(node).toLowerCase();
    const missing = words.filter((word) => !shown.includes(word));
    return missing.length ? this.othersOf(node).find((label) =>
      missing.some((word) => label.toLowerCase().includes(word))) ?? null : null;
  }

  isWords(directed) {
    return this.relations[directed % this.relations.length] === ALL_WORDS;
  }

  // the words of the values of an entity, and of the names of its objects
  words(node) {
    const number = this.relations.length;
    const objects = this.edges(node).filter(([relation]) => relation < number
      && !this.isWords(relation)).map(([, other]) => this.short(other));
    const values = this.literalsOf(node).map(([, value]) => value);
    const found = [...values, ...objects].join(" ").normalize("NFKC").toLowerCase().match(
      /[\p{L}\p{N}]+/gu) ?? [];
    return [...new Set(found.filter((word) => word.length > 1))];
  }

  relation(directed) {
    const number = this.relations.length;
    const name = localName(this.relations[directed % number]);
    return directed < number ? `${name} →` : `← ${name}`;
  }

  // the same relation, read from its other end
  inverse(directed) {
    const number = this.relations.length;
    return directed < number ? directed + number : directed - number;
  }

  // distinct [relation, neighbour] of a node, in both directions
  edges(node) {
    if (!this.triples) return [];
    if (!this._out) {
      const [heads, relations, tails] = this.triples;
      this._out = Lists.grouped(heads, this.numNodes, relations, tails);
      this._in = Lists.grouped(tails, this.numNodes, relations, heads);
    }
    let found = this._edges.get(node);
    if (!found) {
      const number = this.relations.length;
      const both = [...this._out.of(node), ...this._in.of(node).map(([relation, head]) =>
        [relation + number, head])];
      const distinct = new Map(both.map((edge) => [edge.join(), edge]));
      found = [...distinct.values()];
      this._edges.set(node, found);
    }
    return found;
  }

  // [attribute, value] of an entity, without the literals that are evidence
  literalsOf(node) {
    if (!this.literals) return [];
    const [entities, attributes, values] = this.literals.triples;
    this._literals ??= Lists.grouped(entities, this.numEntities, attributes, values);
    if (node >= this.numEntities) return [];
    return this._literals.of(node).map(([attribute, value]) =>
      [localName(this.literals.attributes[attribute]), this.literals.values[value]]);
  }
}

// one row per match, and one per source entity without a match
class Matches {
  constructor(content, source, target) {
    this.source = source;
    this.target = target;
    this.sources = content.rows.sources;
    this.targets = content.rows.targets; // -1: no match
    this.probs = content.rows.probs;
    this.given = content.rows.given;
    this.witnesses = content.rows.witnesses;
    this.numWitnesses = content.rows.num_witnesses;
    this.size = this.sources.length;
    this.offered = new Lists(...content.candidates);
    this.place = new Map(content.suggested.map(([entity], place) => [entity, place]));
    this.reason = new Map(content.suggested);
    this.best = [...this.targets];
    this.bestProbs = [...this.probs];
    this.runners = new Array(this.size).fill(null);
    const [targets, probs] = this.offered.columns;
    for (let row = 0; row < this.size; row++) {
      const one = this.sources[row];
      for (let place = this.offered.starts[one]; place < this.offered.starts[one + 1]; place++) {
        if (targets[place] === this.best[row]) continue;
        if (this.best[row] < 0) {
          this.best[row] = targets[place];
          this.bestProbs[row] = probs[place];
          continue;
        }
        this.runners[row] = [targets[place], probs[place]];
        break;
      }
    }
    this.rowsOf = new Map();
    this.sources.forEach((one, row) => {
      if (!this.rowsOf.has(one)) this.rowsOf.set(one, []);
      this.rowsOf.get(one).push(row);
    });
  }

  // what the search looks at, short names before full ones; made after the page is shown, or by the
  // first search
  get texts() {
    this._texts ??= this.sources.map((one, row) => {
      const ends = [[this.source, one], [this.target, this.best[row]]].filter(([, node]) =>
        node >= 0);
      const names = (of) => ends.map(of).join(" ").toLowerCase();
      return [names(([graph, node]) => graph.searched(node)),
        names(([graph, node]) => graph.names[node])];
    });
    return this._texts;
  }

  // a word with a slash or a colon is a part of an IRI; namespaces would match most other words in
  // all rows
  has(row, word) {
    return this.texts[row][0].includes(word)
      || (/[/:]/.test(word) && this.texts[row][1].includes(word));
  }

  // [target, probability] of a source entity, most probable first
  candidates(source) {
    return this.offered.of(source);
  }

  prob(source, target) {
    return this.candidates(source).find(([one]) => one === target)?.[1] ?? null;
  }

  accepted(row, threshold) {
    return this.given[row] === 1 || (this.targets[row] >= 0 && this.probs[row] >= threshold);
  }

  // other source entities with this candidate: [source, probability]
  claims(source, target) {
    if (!this._claims) {
      const sources = [], targets = [], probs = [];
      for (const one of this.rowsOf.keys()) {
        for (const [candidate, prob] of this.candidates(one)) {
          sources.push(one); targets.push(candidate); probs.push(prob);
        }
      }
      this._claims = Lists.grouped(targets, this.target.numEntities, sources, probs);
    }
    return this._claims.of(target).filter(([one]) => one !== source).sort((a, b) => b[1] - a[1]);
  }
}
