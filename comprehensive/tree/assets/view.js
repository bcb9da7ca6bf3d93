// What the page shows and what its fields do.  Texts of the input go into text nodes only.
"use strict";

const DATA = JSON.parse(document.getElementById("data").textContent);
const STEPS = 400;
const LARGEST_PARAMETER = 65536;

/** An element; `settings` are properties, `children` elements or texts. */
const make = (tag, settings = {}, ...children) => {
  const element = Object.assign(document.createElement(tag), settings);
  element.append(...children);
  return element;
};
const code = (text) => make("code", {}, text);
const asNumber = (value) => Number(value.n) / Number(value.d);
const list = (items) => make("ul", {}, ...items.map((item) => make("li", {}, item)));

/** Leave out conditions that the path has decided; say which strategies were applied there. */
const skipped = (tree, everything) => {
  const applied = [];
  while (tree.condition && !everything) {
    if (tree.refuse.never) tree = tree.accept;
    else if (tree.accept.never) {
      if (tree.strategy) applied.push(tree.strategy);
      tree = tree.refuse;
    } else break;
  }
  return [tree, applied];
};

/** A field with a slider for one symbol; `change` is called with no argument after every new text. */
class Field {
  constructor(name, hint, largest, target, change) {
    this.name = name;
    this.target = target;
    this.largest = largest;
    this.text = make("input", { type: "text", inputMode: "numeric", spellcheck: false, ariaLabel: name });
    this.slider = make("input", { type: "range", min: 0, max: STEPS, step: 1, ariaLabel: `${name}, slider` });
    this.text.addEventListener("input", () => {
      this.placeSlider();
      change();
    });
    this.slider.addEventListener("input", () => {
      this.text.value = this.atSlider(Number(this.slider.value));
      this.mark();
      change();
    });
    this.element = make("label", { className: "field", title: hint }, make("span", {}, code(name)), this.text, this.slider);
  }

  // Integers are spread by their logarithm, targets (which may be below 1) evenly.
  atSlider(place) {
    if (this.target) return String(Math.round((place / STEPS) * this.largest * 1000) / 1000);
    return String(Math.round(Math.pow(this.largest + 1, place / STEPS)) - 1);
  }

  placeSlider() {
    this.mark();
    const value = this.value();
    if (value === null) return;
    const number = asNumber(value);
    const share = this.target ? number / this.largest : Math.log1p(number) / Math.log1p(this.largest);
    this.slider.value = Math.round(STEPS * Math.min(1, Math.max(0, share)));
  }

  mark() {
    this.text.classList.toggle("wrong", this.value() === null);
  }

  value() {
    return Walk.parse(this.text.value, this.target);
  }

  set(text) {
    this.text.value = text;
    this.placeSlider();
  }
}

class ScheduleView {
  constructor(schedule) {
    this.schedule = schedule;
    this.marks = [];
    this.shown = 0;
    this.chosen = null;
    this.verdict = make("div", { className: "verdict" });
    this.verdict.setAttribute("aria-live", "polite");
    this.tree = make("div", { className: "tree" });
    this.leaf = make("article", { className: "leaf-panel" });
    this.element = make("section", { id: schedule.name });
    const title = `${schedule.name}: the schedule at line ${schedule.line}, function ${schedule.function}`;
    const side = make("aside", {}, ...this.fieldsOf(), this.facts());
    const main = make("main", {}, this.verdict, this.tools(), this.tree);
    this.element.append(make("h2", {}, title), make("div", { className: "columns" }, side, main), this.leaf);
    if (!schedule.complete) main.prepend(make("p", { className: "warning" }, "The time limit ended the run early: branches are missing."));
    this.draw();
    this.start();
  }

  fieldsOf() {
    const { schedule } = this;
    this.machineField = new Map(schedule.fields);
    this.targets = new Map(schedule.targets);
    const change = () => this.update();
    const ofPresets = (field) => Object.values(DATA.presets).map((one) => Number(one[field]));
    const largest = (field) => 2 * Math.max(...ofPresets(field)) || LARGEST_PARAMETER; // NaN: the presets lack it
    this.fields = new Map();
    const add = (name, hint, most, target) => {
      const field = new Field(name, hint, most, target, change);
      this.fields.set(name, field);
      return field.element;
    };
    this.preset = make("select", { ariaLabel: "machine" }, make("option", { value: "" }, "own values"));
    for (const name of Object.keys(DATA.presets)) this.preset.append(make("option", { value: name }, name));
    this.preset.addEventListener("change", () => {
      this.take(DATA.presets[this.preset.value] || {});
      this.update();
    });
    const machine = schedule.machine.map((name) => {
      const target = this.targets.has(name);
      const field = this.machineField.get(name);
      const most = target ? 4 * asNumber(Walk.parse(this.targets.get(name), true)) : largest(field);
      return add(name, target ? `target of a counter: ${field}` : field, most, target);
    });
    const fixed = schedule.fixed.map(([name, number]) => make("p", { className: "fixed" }, code(`${name} = ${number}`), " (fixed)"));
    const named = [...schedule.data, ...schedule.program].map((name) =>
      add(name, schedule.data.includes(name) ? "data parameter" : "program parameter", LARGEST_PARAMETER, false));
    const opaque = schedule.opaque.map((name) => add(name, "computed by the C code", LARGEST_PARAMETER, false));
    return [make("h3", {}, "Machine ", this.preset), ...machine, ...fixed, make("h3", {}, "Parameters"), ...named, ...opaque];
  }

  /** Give machine symbols the numbers of a machine, by the machine's field names. */
  take(numbers) {
    for (const name of this.schedule.machine) {
      const number = numbers[this.machineField.get(name)];
      if (number !== undefined) this.fields.get(name).set(number);
    }
  }

  /** The first point: parameters of the example of leaf 1 on sm_80; the whole example where that has no leaf. */
  start() {
    this.preset.value = "sm_80";
    this.take(DATA.presets.sm_80);
    for (const [name, field] of this.fields) {
      if (field.text.value === "") field.set(this.targets.get(name) || "1");
    }
    const [first] = this.schedule.leaves;
    this.go(first, (name) => !this.schedule.machine.includes(name));
    if (!this.selection.leaf) this.go(first);
  }

  /** Take the numbers of a leaf's example, those of the names that are `wanted`. */
  go(leaf, wanted = () => true) {
    for (const [name, number] of (leaf && leaf.witness) || []) {
      if (this.fields.has(name) && wanted(name)) this.fields.get(name).set(number);
    }
    this.update();
  }

  facts() {
    const { schedule } = this;
    const derived = schedule.derived.map((symbol) => code(`${symbol.name} = ${symbol.text}`));
    const start = schedule.start.map((constraint) => code(constraint.text));
    const parts = [make("h3", {}, "When it applies"), start.length ? list(start) : make("p", {}, "always")];
    if (derived.length) parts.push(make("h3", {}, "Derived"), list(derived));
    if (schedule.notes.length) {
      const notes = schedule.notes.map(([subject, sentence]) => make("span", {}, make("b", {}, subject), `: ${sentence}`));
      parts.push(make("details", {}, make("summary", {}, "What was tried"), list(notes)));
    }
    return make("div", { className: "facts" }, ...parts);
  }

  tools() {
    this.search = make("input", { type: "search", placeholder: "search conditions, counters, strategies, code", ariaLabel: "search" });
    this.found = make("span", { className: "found" });
    this.search.addEventListener("input", () => this.find());
    this.everything = make("input", { type: "checkbox" });
    this.everything.addEventListener("change", () => {
      this.draw();
      this.find();
      this.update();
    });
    const fold = (open) => () => this.tree.querySelectorAll("details").forEach((one) => (one.open = open));
    const unfold = make("button", { type: "button", onclick: fold(true) }, "unfold all");
    const foldAll = make("button", { type: "button", onclick: fold(false) }, "fold all");
    const decided = make("label", {}, this.everything, " conditions already decided, too");
    return make("div", { className: "tools" }, this.search, this.found, unfold, foldAll, decided);
  }

  draw() {
    this.marks = [];
    const [root, applied] = skipped(this.schedule.root, this.everything.checked);
    const first = applied.length ? [make("span", { className: "edge" }, `first: ${applied.join(", ")}`)] : [];
    this.tree.replaceChildren(...first, this.drawn(root));
  }

  /** The element of a subtree; `marks` gets what is searched and lit up. */
  drawn(tree) {
    if (!tree.condition) return this.drawnEnd(tree);
    const { condition, counter } = tree;
    const numbers = make("span", { className: "numbers" });
    const summary = make("summary", {}, make("span", { className: "counter" }, counter), " ", code(condition.text), " ", numbers);
    const element = make("details", { className: "node", open: true }, summary);
    const mark = { element, tree, numbers, own: `${counter} ${condition.text}`.toLowerCase() };
    this.marks.push(mark);
    for (const side of ["accept", "refuse"]) {
      if (tree[side].never && !this.everything.checked) continue;
      const [child, later] = skipped(tree[side], this.everything.checked);
      const applied = side === "refuse" && tree.strategy ? [tree.strategy, ...later] : later;
      const words = [side === "accept" ? "yes" : "no", ...(applied.length ? [applied.join(", ")] : [])];
      const edge = make("span", { className: "edge" }, words.join(": "));
      const branch = make("div", { className: `branch ${side}` }, edge, this.drawn(child));
      this.marks.push({ element: branch, edge: true, own: applied.join(" ").toLowerCase() });
      mark[side] = branch;
      element.append(branch);
    }
    return element;
  }

  drawnEnd(tree) {
    if (!tree.leaf) {
      // The limit alone; the verdict and the hint also have the strategies that were tried.
      const text = tree.never ? "never" : `no leaf: ${tree.none.split("; ")[0]}`;
      const element = make("div", { className: "none", title: tree.none }, text);
      this.marks.push({ element, tree, own: `no leaf: ${tree.none}`.toLowerCase() });
      return element;
    }
    const leaf = this.schedule.leaves[tree.leaf - 1];
    const element = make("button", { type: "button", className: "leaf" }, make("b", {}, `leaf ${leaf.id}`), ` ${leaf.title}`);
    element.addEventListener("click", () => this.show(leaf.id));
    const texts = [`leaf ${leaf.id}`, leaf.title];
    for (const one of leaf.variants) {
      const counters = one.counters.map((counter) => `${counter.name} ${counter.text}`);
      texts.push(one.title, one.kernel, ...counters, one.metafork || "", one.cuda || "");
    }
    this.marks.push({ element, tree, leaf: leaf.id, own: texts.join("\n").toLowerCase() });
    return element;
  }

  /** Hide what neither has the words searched for nor stands above or below something that has. */
  find() {
    const words = this.search.value.toLowerCase().trim();
    const hits = this.marks.filter((mark) => words && mark.own.includes(words));
    for (const mark of this.marks) {
      const within = hits.some((hit) => mark.element.contains(hit.element) || (hit.edge && hit.element.contains(mark.element)));
      mark.element.classList.toggle("hidden", Boolean(words) && !within);
      mark.element.classList.toggle("hit", hits.includes(mark) && !mark.edge);
      if (words && within && mark.element.tagName === "DETAILS") mark.element.open = true;
    }
    this.found.textContent = words ? `${hits.length} found` : "";
  }

  /** Walk the tree at the numbers of the fields, and light up the way. */
  update() {
    const values = new Map();
    for (const [name, field] of this.fields) {
      const value = field.value();
      if (value !== null) values.set(name, value);
    }
    const fits = (preset) => preset && this.schedule.machine.every((name) => {
      const number = DATA.presets[preset][this.machineField.get(name)];
      return number === undefined || number === this.fields.get(name).text.value.trim();
    });
    this.preset.value = [this.preset.value, ...Object.keys(DATA.presets)].find(fits) || "";
    const found = (this.selection = Walk.select(this.schedule, values));
    const taken = new Set();
    let tree = found.path.length || found.leaf || found.region ? this.schedule.root : null;
    const sides = new Map();
    for (const accepted of found.path) {
      taken.add(tree);
      sides.set(tree, accepted ? "accept" : "refuse");
      tree = accepted ? tree.accept : tree.refuse;
    }
    if (tree) taken.add(tree);
    let lit = null;
    for (const mark of this.marks) {
      if (mark.edge) continue;
      const on = taken.has(mark.tree);
      mark.element.classList.toggle("taken", on);
      for (const side of ["accept", "refuse"]) {
        if (mark[side]) mark[side].classList.toggle("taken", on && sides.get(mark.tree) === side);
      }
      if (mark.numbers) mark.numbers.textContent = on ? this.numbersOf(mark.tree.condition, sides.get(mark.tree)) : "";
      if (on && !mark.tree.condition) lit = mark.element;
    }
    this.say(found);
    if (found.leaf !== this.chosen) {
      this.chosen = found.leaf;
      if (lit) this.tree.scrollTop += lit.getBoundingClientRect().top - this.tree.getBoundingClientRect().top - this.tree.clientHeight / 2;
      this.show(found.leaf || this.shown || 1);
    } else this.show(this.shown);
  }

  numbersOf(condition, side) {
    const [left, right] = Walk.sides(condition, this.selection.point).map(Walk.text);
    return `${left} ${side === "accept" ? condition.relation : Walk.OPPOSITE[condition.relation]} ${right}`;
  }

  say(found) {
    const { verdict, schedule } = this;
    const serial = "There the serial code runs.";
    verdict.className = found.leaf ? "verdict" : "verdict none";
    if (found.missing.length) verdict.replaceChildren(`No number is given for ${found.missing.join(", ")}.`);
    else if (found.outside.length) verdict.replaceChildren(`No leaf: the values lie outside of the start system. ${serial}`, list(found.outside.map(code)));
    else if (!found.leaf) verdict.replaceChildren(`No leaf: ${found.region}. ${serial}`);
    else {
      const leaf = schedule.leaves[found.leaf - 1];
      const one = leaf.variants[found.variant - 1];
      const passed = found.passed.flatMap(([number, failed]) => failed.map((text) => make("span", {}, `not variant ${number}: `, code(text))));
      verdict.replaceChildren(make("b", {}, `leaf ${leaf.id}`), ` (${leaf.title}) is chosen, variant ${one.number}: `, code(one.kernel), ...(passed.length ? [list(passed)] : []));
    }
  }

  /** The variants of a leaf, in order; the one that runs now is marked, and open. */
  variantsOf(leaf) {
    const { selection } = this;
    return leaf.variants.map((one) => {
      const runs = selection.leaf === leaf.id && selection.variant === one.number;
      const limits = one.limits.map((limit) => code(limit.text));
      const rows = one.counters.map((counter) => {
        const number = runs ? selection.estimates[counter.name] : undefined;
        const value = number === undefined || number === counter.text ? counter.text : `${counter.text} = ${number}`;
        return make("tr", {}, make("th", {}, counter.name), make("td", {}, code(value)));
      });
      const parts = [make("summary", {}, `variant ${one.number}: ${one.title} `, code(one.kernel))];
      if (limits.length) parts.push(make("h4", {}, "Runs where"), list(limits));
      parts.push(make("table", {}, ...rows));
      if (one.metafork !== null) {
        const pane = (title, text) => make("div", {}, make("h4", {}, title), make("pre", { tabIndex: 0 }, text));
        parts.push(make("div", { className: "sources" }, pane("MetaFork", one.metafork), pane("CUDA", one.cuda)));
      }
      return make("details", { className: runs ? "variant taken" : "variant", open: runs || leaf.variants.length === 1 }, ...parts);
    });
  }

  show(id) {
    const leaf = this.schedule.leaves[id - 1];
    if (!leaf) return;
    this.shown = id;
    const { selection } = this;
    for (const mark of this.marks) {
      if (mark.leaf) mark.element.classList.toggle("shown", mark.leaf === id);
    }
    const example = make("button", { type: "button" }, "go to an example");
    example.addEventListener("click", () => this.go(leaf));
    const heading = make("h3", {}, `leaf ${leaf.id}: ${leaf.title} `, ...(leaf.witness ? [example] : []));
    const cases = leaf.systems.map((system) => code(system.map((one) => one.text).join(" and ") || "always"));
    const parts = [heading, make("h4", {}, cases.length > 1 ? "Chosen in any of these cases" : "Chosen when"), list(cases)];
    const violated = selection.violated[id];
    if (violated) parts.push(make("h4", {}, "Not chosen now"), list(violated.map(code)));
    parts.push(make("h4", {}, "Variants, of which the first runs whose limits hold"), ...this.variantsOf(leaf));
    this.leaf.replaceChildren(...parts);
  }
}

document.body.append(make("h1", {}, DATA.source));
if (!DATA.schedules.length) document.body.append(make("p", {}, "There is no meta_schedule in this file."));
if (DATA.schedules.length > 1) {
  const links = DATA.schedules.map((one) => make("a", { href: `#${one.name}` }, `${one.name} (${one.leaves.length} leaves)`));
  document.body.append(make("nav", {}, ...links));
}
const VIEWS = DATA.schedules.map((one) => new ScheduleView(one));
document.body.append(...VIEWS.map((view) => view.element));
