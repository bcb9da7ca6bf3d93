// The walk of `metafork select`: exact rational numbers over BigInt, no part of a browser.
"use strict";

const Walk = (() => {
  const byName = () => Object.create(null); // names of C are no names of Object.prototype
  const gcd = (a, b) => {
    while (b) [a, b] = [b, a % b];
    return a < 0n ? -a : a;
  };
  const rational = (n, d = 1n) => {
    if (d === 0n) throw new RangeError("division by zero");
    if (d === 1n) return { n, d };
    const common = gcd(n, d) * (d < 0n ? -1n : 1n);
    return { n: n / common, d: d / common };
  };
  const ZERO = rational(0n);
  const LEAST = rational(-(2n ** 63n));
  const BEYOND = rational(2n ** 63n);
  const add = (a, b) => rational(a.n * b.d + b.n * a.d, a.d * b.d);
  const multiply = (a, b) => rational(a.n * b.n, a.d * b.d);
  const divide = (a, b) => rational(a.n * b.d, a.d * b.n);
  const less = (a, b) => a.n * b.d < b.n * a.d;
  const text = (a) => (a.d === 1n ? String(a.n) : `${a.n}/${a.d}`);
  const truncated = (a) => rational(a.n / a.d);
  const floor = (a) => rational(a.n / a.d - (a.n < 0n && a.n % a.d !== 0n ? 1n : 0n));
  const ceiling = (a) => rational(-floor(rational(-a.n, a.d)).n);

  /** A number from text: `12`, `-3`; `1/4` and `0.25` where `fractions` may be; null for anything else. */
  const parse = (written, fractions = false) => {
    const match = /^\s*([+-]?\d+)(?:\.(\d+)|\/(\d+))?\s*$/.exec(written);
    if (!match || ((match[2] || match[3]) && !fractions)) return null;
    if (match[3]) return BigInt(match[3]) === 0n ? null : rational(BigInt(match[1]), BigInt(match[3]));
    const digits = match[2] || "";
    return rational(BigInt(match[1] + digits), 10n ** BigInt(digits.length));
  };

  const evaluate = (polynomial, point) =>
    polynomial.reduce((sum, [numerator, denominator, powers]) => {
      let product = rational(BigInt(numerator), BigInt(denominator));
      for (const [name, exponent] of powers) {
        if (!point.has(name)) throw new Error(`no value of ${name}`);
        for (let i = 0; i < exponent; i++) product = multiply(product, point.get(name));
      }
      return add(sum, product);
    }, ZERO);

  const sides = (constraint, point) => [evaluate(constraint.left, point), evaluate(constraint.right, point)];
  const compare = (relation, left, right) => {
    if (relation === "<") return less(left, right);
    return relation === "<=" ? !less(right, left) : left.n === right.n && left.d === right.d;
  };
  const holds = (constraint, point) => compare(constraint.relation, ...sides(constraint, point));

  const derive = (symbol, point) => {
    const values = symbol.operands.map((operand) => evaluate(operand, point));
    if (symbol.kind === "floor") return floor(divide(values[0], values[1]));
    if (symbol.kind === "ceiling") return ceiling(divide(values[0], values[1]));
    const better = symbol.kind === "maximum" ? (a, b) => less(b, a) : less;
    return truncated(values.reduce((best, value) => (better(value, best) ? value : best)));
  };

  const OPPOSITE = { "<=": ">", "<": ">=", "==": "!=" };
  const failure = (failed, left, relation, right) => `${failed}: ${text(left)} ${OPPOSITE[relation]} ${text(right)}`;
  const violations = (system, point) =>
    system.filter((one) => !holds(one, point)).map((one) => {
      const [left, right] = sides(one, point);
      return failure(one.failed || `${one.text} does not hold`, left, one.relation, right);
    });

  /** The symbols that the user gives. */
  const listed = (schedule) => [...schedule.data, ...schedule.program, ...schedule.opaque, ...schedule.machine];

  /**
   * Which leaf a point chooses (0: none), as comprehensive/tree/selection.py says it.
   * `values` is a Map of names to rationals; `path` is the way through the tree, true for an accepted condition, and
   * `end` where it leads.  `variant` is the number of the leaf's variant that runs; `passed` are [number, failures] of
   * those before it.
   */
  const choose = (schedule, values) => {
    const point = new Map(schedule.fixed.map(([name, number]) => [name, parse(number, true)]));
    for (const [name, value] of values) point.set(name, value);
    const missing = listed(schedule).filter((name) => !point.has(name));
    const found = { leaf: 0, missing, outside: [], region: "", path: [], end: null, point, variant: 0, passed: [] };
    found.derived = byName();
    if (missing.length) return found;
    for (const symbol of schedule.derived) {
      const quotient = symbol.kind === "floor" || symbol.kind === "ceiling";
      if (quotient && evaluate(symbol.operands[1], point).n === 0n) {
        found.derived = byName();
        found.outside = [`1 <= ${symbol.denominator} does not hold: 1 > 0`];
        return found;
      }
      const value = derive(symbol, point);
      if (less(value, LEAST) || !less(value, BEYOND)) {
        found.derived = byName();
        found.region = `${symbol.name} = ${symbol.text} does not fit 64 bits`;
        return found;
      }
      point.set(symbol.name, value);
      found.derived[symbol.name] = text(value);
    }
    const negative = listed(schedule).filter((name) => less(point.get(name), ZERO));
    found.outside = negative.map((name) => failure(`0 <= ${name} does not hold`, ZERO, "<=", point.get(name)));
    found.outside.push(...violations(schedule.start, point));
    if (found.outside.length) return found;
    found.end = schedule.root;
    while (found.end.condition) {
      const accepted = holds(found.end.condition, point);
      found.path.push(accepted);
      found.end = accepted ? found.end.accept : found.end.refuse;
    }
    if (!found.end.leaf) {
      found.region = found.end.none;
      return found;
    }
    found.leaf = found.end.leaf;
    for (const one of schedule.leaves[found.leaf - 1].variants) {
      if (!one.values.every(([name, value]) => text(point.get(name)) === value)) continue;
      const failed = violations(one.limits, point);
      if (!failed.length) {
        found.variant = one.number;
        break;
      }
      found.passed.push([one.number, failed]);
    }
    return found;
  };

  /** What `choose` finds, with the values of the variant's counters, and for every other leaf what fails there. */
  const select = (schedule, values) => {
    const found = choose(schedule, values);
    Object.assign(found, { estimates: byName(), violated: {} });
    if (!found.end) return found;
    for (const leaf of schedule.leaves) {
      if (leaf.id === found.leaf) continue;
      const failed = leaf.systems.map((system) => violations(system, found.point));
      found.violated[leaf.id] = failed.reduce((best, one) => (one.length < best.length ? one : best));
    }
    const counters = found.leaf ? schedule.leaves[found.leaf - 1].variants[found.variant - 1].counters : [];
    for (const counter of counters) {
      const divisor = evaluate(counter.denominator, found.point);
      if (divisor.n === 0n) continue;
      found.estimates[counter.name] = text(divide(evaluate(counter.numerator, found.point), divisor));
    }
    return found;
  };

  return { OPPOSITE, parse, text, sides, listed, choose, select };
})();
