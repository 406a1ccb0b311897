// The evidence for a pair, as `emea explain` computes it (Eq. 19), and what speaks against it.

const SURE = 1 - 1e-7; // one piece of evidence is at most this probable
// relations correspond if one is included in the other with this probability
const CORRESPONDS = 0.5;
const SINGLE_VALUED = 0.9; // a relation has one value if nearly all its heads are distinct

class Evidence {
  constructor(content, source, target) {
    this.source = source;
    this.target = target;
    this.carriers = new Lists(...content.carriers);
    this.least = content.least;
    this.functionality = content.functionality;
    this.rule = content.rule;
    this.used = content.used;
    this.labels = new Map(content.labels);
    const [keys, forth, back] = content.inclusions;
    this.included = new Map(keys.map((key, place) => [key, [forth[place], back[place]]]));
    this.numTargetRelations = 2 * target.relations.length;
  }

  inclusions(relation, other) {
    return this.included.get(relation * this.numTargetRelations + other) ?? [0, 0];
  }

  // the most probable counterpart of a source node: [target, probability]
  believed(node) {
    return this.carriers.of(node).reduce((best, one) => (one[1] > best[1] ? one : best), [-1, 0]);
  }

  believedBack(node) {
    if (!this._back) {
      this._back = new Map();
      for (let one = 0; one + 1 < this.carriers.starts.length; one++) {
        for (const [target, prob] of this.carriers.of(one)) {
          if (prob > (this._back.get(target)?.[1] ?? 0)) this._back.set(target, [one, prob]);
        }
      }
    }
    return this._back.get(node) ?? [-1, 0];
  }

  // all pieces r(e, n), r'(e', n') with n and n' believed to match, with their weights
  pieces(source, target) {
    const around = new Map();
    for (const [relation, node] of this.target.edges(target)) {
      if (!around.has(node)) around.set(node, []);
      around.get(node).push(relation);
    }
    const found = [];
    for (const [relation, neighbour] of this.source.edges(source)) {
      for (const [counterpart, prob] of this.carriers.of(neighbour)) {
        for (const other of around.get(counterpart) ?? []) {
          const [forth, back] = this.inclusions(relation, other);
          if (prob <= 0 || Math.max(forth, back) < this.least.inclusion) continue;
          const bySource = Math.min(SURE, back * this.functionality[0][relation] * prob);
          const byTarget = Math.min(SURE, forth * this.functionality[1][other] * prob);
          const weight = -Math.log1p(-bySource) - Math.log1p(-byTarget);
          if (-Math.expm1(-weight) <= this.least.evidence) continue;
          found.push({ neighbour, counterpart, relation, other, prob, weight });
        }
      }
    }
    return found;
  }

  // the evidence by neighbour, largest share first
  support(source, target) {
    const pieces = this.pieces(source, target);
    const total = pieces.reduce((sum, piece) => sum + piece.weight, 0);
    const groups = new Map();
    for (const piece of pieces) {
      const key = `${piece.neighbour} ${piece.counterpart}`;
      if (!groups.has(key)) groups.set(key, { ...piece, weight: 0, paths: [] });
      const group = groups.get(key);
      group.weight += piece.weight;
      group.paths.push(piece);
    }
    const sorted = [...groups.values()].sort((a, b) => b.weight - a.weight);
    for (const group of sorted) {
      group.share = total ? group.weight / total : 0;
      group.isLabel = this.labels.get(group.neighbour) === group.counterpart;
      group.paths.sort((a, b) => b.weight - a.weight);
    }
    return { groups: sorted, value: -Math.expm1(-total), numPieces: pieces.length };
  }

  // neighbours of an entity that do not support the pair, with their believed counterparts
  silent(side, entity, partner, supporters) {
    const [own, other] = side === 0 ? [this.source, this.target] : [this.target, this.source];
    const around = new Set(other.edges(partner).map(([, node]) => node));
    const relations = new Map();
    for (const [relation, node] of own.edges(entity)) {
      if (supporters.has(node) || own.isWords(relation)) continue;
      if (!relations.has(node)) relations.set(node, []);
      relations.get(node).push(relation);
    }
    const found = [...relations].map(([node, between]) => {
      const [believed, prob] = side === 0 ? this.believed(node) : this.believedBack(node);
      return { node, relations: between, believed, prob, isNear: around.has(believed) };
    });
    return found.sort((a, b) => b.prob - a.prob);
  }

  // corresponding relations with one value each, whose values do not match
  differences(source, target) {
    const supported = new Set(this.pieces(source, target).map((piece) => piece.relation));
    const [mine, theirs] = [this.source.edges(source), this.target.edges(target)].map((edges) => {
      const values = new Map();
      for (const [relation, node] of edges) {
        values.set(relation, [...(values.get(relation) ?? []), node]);
      }
      return values;
    });
    const found = [];
    for (const [relation, nodes] of mine) {
      const isOther = supported.has(relation) || this.source.isWords(relation);
      if (isOther || !this.isSingle(0, relation)) continue;
      for (const [other, others] of theirs) {
        if (!this.isSingle(1, other)) continue;
        const inclusion = Math.max(...this.inclusions(relation, other));
        if (inclusion >= CORRESPONDS) found.push({ relation, other, nodes, others, inclusion });
      }
    }
    return found.sort((a, b) => b.inclusion - a.inclusion);
  }

  isSingle(side, relation) {
    const graph = side === 0 ? this.source : this.target;
    return this.functionality[side][graph.inverse(relation)] >= SINGLE_VALUED;
  }
}
