// What the page shows and what its fields do.  Texts of the input go into text nodes only.
"use strict";

const DATA = JSON.parse(document.getElementById("data").textContent);
const LARGEST_POWER = 20;
const MOST_HITS = 12;

const code = (text) => make("code", {}, text);
/** A condition; its title has the exact form, and what the symbols in both mean (lines such as `Z: shared memory`). */
const worded = ({ text, exact = "", words }, meanings) => {
  const meant = meanings.filter((line) => new RegExp(`\\b${line.match(/^[\w ]+?(?=:| = )/)}\\b`).test(`${text} ${exact}`));
  return make(words ? "span" : "code", { title: [exact, ...meant].join("\n").trim() }, text);
};
const list = (items) => make("ul", {}, ...items.map((item) => make("li", {}, item)));
const folded = (title, ...children) => make("details", {}, make("summary", {}, title), ...children);

/** A text in its colours; `spans` is what comprehensive/tree/colours.py makes. */
const words = (text, spans) => {
  let end = 0;
  return [...spans.matchAll(/([a-z_])(\d*)/g)].map(([, kind, length]) => {
    const part = text.slice(end, (end += Number(length || 1)));
    return kind === "_" ? part : make("span", { className: DATA.kinds[kind] }, part);
  });
};

/** The exact number of a symbol as a text; a parameter (`stepped`) has a slider along powers of two as well. */
class Field {
  constructor(name, hint, stepped, moved, done) {
    this.stepped = stepped;
    this.text = make("input", { type: "text", inputMode: "numeric", spellcheck: false, ariaLabel: name });
    this.slider = make("input", { type: "range", min: 0, max: LARGEST_POWER, step: 1, ariaLabel: `${name}, powers of two` });
    this.text.addEventListener("input", () => this.set(this.text.value) || moved());
    this.slider.addEventListener("input", () => this.set(String(2 ** Number(this.slider.value))) || moved());
    for (const input of [this.text, this.slider]) input.addEventListener("change", done);
    this.element = make("div", { className: "field", title: hint }, code(name), this.text, stepped ? this.slider : "");
  }

  value() {
    return Walk.parse(this.text.value, !this.stepped);
  }

  set(text) {
    if (this.text.value !== text) this.text.value = text;
    const value = this.value();
    this.text.classList.toggle("wrong", value === null);
    if (value !== null) this.slider.value = Math.round(Math.log2(Math.max(1, Number(value.n) / Number(value.d))));
    this.slider.ariaValueText = text;
  }
}

class ScheduleView {
  constructor(schedule) {
    this.schedule = schedule;
    this.meanings = [...new Set([...schedule.legend, ...schedule.derived.map(({ name, text }) => `${name} = ${text}`)])];
    this.marks = [];
    this.shown = 0;
    this.chosen = null;
    this.opened = new Set(); // kernels whose source is asked for
    this.verdict = make("div", { className: "verdict" });
    this.verdict.setAttribute("aria-live", "polite");
    this.tree = make("div", { className: "tree" });
    this.leaf = make("article", { className: "leaf-panel" });
    this.chart = new Chart(schedule, (pairs, gpu) => {
      this.take(pairs, gpu === undefined ? this.gpu.value : gpu);
      this.update();
      remember();
    }, () => {
      this.chart.draw(this.values());
      remember();
    });
    const title = `${schedule.name}: the schedule at line ${schedule.line}, function ${schedule.function}`;
    const legend = schedule.legend.map((line) => make("p", {}, line));
    const main = make("main", {}, this.verdict, this.tools(), this.tree, make("div", { className: "meanings" }, ...legend), this.chart.element);
    if (!schedule.complete) main.prepend(make("p", { className: "warning" }, "The time limit ended the run early: branches are missing."));
    const columns = make("div", { className: "columns" }, make("aside", {}, ...this.fieldsOf(), ...this.facts()), main);
    this.element = make("section", {}, make("h2", {}, title), columns, this.leaf);
    this.tree.append(this.drawn(schedule.root));
    this.apply({ axes: this.chart.axes });
  }

  fieldsOf() {
    const { schedule } = this;
    const options = schedule.gpus.flatMap(([preset, names]) =>
      names.map((name) => make("option", { value: name }, name === preset ? name : `${name} (${preset})`)));
    this.gpu = make("select", { ariaLabel: "GPU" }, make("option", { value: "" }, "limits of your own"), ...options);
    const moved = () => this.update();
    this.gpu.addEventListener("change", () => {
      this.take([], this.gpu.value);
      this.update();
      remember();
    });
    this.fields = new Map();
    const add = (name, hint, stepped) => {
      const field = new Field(name, hint, stepped, moved, remember);
      this.fields.set(name, field);
      return field.element;
    };
    const meanings = new Map(schedule.fields);
    const limits = schedule.machine.map((name) => add(name, meanings.get(name), false));
    limits.push(...schedule.fixed.map(([name, number]) => make("p", {}, code(`${name} = ${number}`), " (fixed)")));
    const named = [["data", "data parameter"], ["program", "program parameter"], ["opaque", "computed by the C code"]];
    const parameters = named.flatMap(([kind, hint]) => schedule[kind].map((name) => add(name, hint, true)));
    const any = `${schedule.unasked.join(", ")} may have any value for which the program is defined.`;
    return [
      make("h3", {}, "GPU"), this.gpu, folded("Limits", ...limits),
      make("h3", {}, "Parameters"), ...parameters, ...(schedule.unasked.length ? [make("p", {}, any)] : []),
    ];
  }

  facts() {
    const { applies, notes } = this.schedule;
    const parts = [folded("When the tree applies", applies.length ? list(applies.map(code)) : "always")];
    const told = notes.map(([subject, sentence]) => make("span", {}, make("b", {}, subject), `: ${sentence}`));
    return told.length ? [...parts, folded("What was tried", list(told))] : parts;
  }

  tools() {
    this.search = make("input", { type: "search", placeholder: "search conditions, instances, GPUs, strategies, code", ariaLabel: "search" });
    this.found = make("span", { className: "found" });
    this.search.addEventListener("input", () => this.find());
    const fold = (open) => () => this.tree.querySelectorAll("details").forEach((one) => (one.open = open));
    const unfold = make("button", { type: "button", onclick: fold(true) }, "unfold all");
    const foldAll = make("button", { type: "button", onclick: fold(false) }, "fold all");
    this.hits = make("div", { className: "hits" });
    return make("div", { className: "tools" }, this.search, this.found, unfold, foldAll, this.hits);
  }

  /** Buttons for the GPUs and the variants that have the words searched for. */
  hitsFor(asked) {
    const button = (text, chosen) => make("button", { type: "button", onclick: () => chosen() || remember() }, text);
    const named = (name, preset) => `${name} ${preset}`.toLowerCase().includes(asked);
    const gpus = this.schedule.gpus.flatMap(([preset, names]) => names.filter((name) => named(name, preset)).map((name) =>
      button(name === preset ? name : `${name} (${preset})`, () => {
        this.take([], name);
        this.update();
      })));
    const texts = (one) => [one.title, one.kernel].join("\n").toLowerCase();
    const variants = this.schedule.leaves.flatMap((leaf) => leaf.variants.filter((one) => texts(one).includes(asked)).map((one) =>
      button(`leaf ${leaf.id}, variant ${one.number}: ${one.title}`, () => {
        this.show(leaf.id);
        const element = this.leaf.querySelectorAll("details.variant")[one.number - 1];
        element.open = true;
        element.scrollIntoView({ block: "center" });
      })));
    return [...gpus, ...variants];
  }

  /** Give symbols numbers, by (name, number); a GPU gives those of the machine. */
  take(pairs, gpu) {
    const [, , limits] = this.schedule.gpus.find(([, names]) => names.includes(gpu)) || [null, null, []];
    this.gpu.value = gpu;
    for (const [name, number] of [...pairs, ...limits]) this.fields.get(name).set(number);
  }

  /** Take a state as `Link.read` returns it; what it leaves out is as when the page opens. */
  apply({ gpu, leaf, axes, values = [] }) {
    const [preset, opening] = this.schedule.opening;
    const first = this.schedule.gpus.find((one) => one[0] === preset);
    this.take(opening, gpu === undefined && first ? first[1][0] : gpu || "");
    for (const [name, number] of values) this.fields.get(name).set(number);
    if (axes) this.chart.axes = axes;
    this.update();
    if (leaf) this.show(leaf);
  }

  state() {
    const given = this.schedule.gpus.find(([, names]) => names.includes(this.gpu.value));
    const known = new Set(given ? given[2].map(([name]) => name) : []);
    const values = [...this.fields].filter(([name]) => !known.has(name)).map(([name, field]) => [name, field.text.value.trim()]);
    return { schedule: this.schedule, gpu: this.gpu.value, leaf: this.shown || "", axes: this.chart.axes, values };
  }

  values() {
    const pairs = [...this.fields].map(([name, field]) => [name, field.value()]);
    return new Map(pairs.filter(([, value]) => value !== null));
  }

  /** The element of a subtree; `marks` gets what is searched and lit up. */
  drawn(tree) {
    if (!tree.condition) return this.drawnEnd(tree);
    const { condition, counter } = tree;
    const numbers = make("span", { className: "numbers" });
    const asked = condition.words ? [] : [make("span", { className: "counter" }, counter), " "];
    const summary = make("summary", {}, ...asked, worded(condition, this.meanings), " ", numbers);
    const element = make("details", { className: "node", open: true }, summary);
    const mark = { element, tree, numbers, own: `${counter} ${condition.text} ${condition.exact || ""}`.toLowerCase() };
    this.marks.push(mark);
    for (const side of ["accept", "refuse"]) {
      const applied = tree[side].applied.join(", ");
      const edge = make("span", { className: "edge" }, (side === "accept" ? "yes" : "no") + (applied && `: ${applied}`));
      mark[side] = make("div", { className: `branch ${side}` }, edge, this.drawn(tree[side]));
      this.marks.push({ element: mark[side], edge: true, own: applied.toLowerCase() });
      element.append(mark[side]);
    }
    return element;
  }

  drawnEnd(tree) {
    if (!tree.leaf) {
      const element = make("div", { className: "none", title: tree.none }, `the serial code runs${tree.beside && `: ${tree.beside}`}`);
      this.marks.push({ element, tree, own: `no leaf: ${tree.none}`.toLowerCase() });
      return element;
    }
    const leaf = this.schedule.leaves[tree.leaf - 1];
    const element = make("button", { type: "button", className: "leaf" }, make("b", {}, `leaf ${leaf.id}`), ` ${leaf.title}`);
    element.addEventListener("click", () => {
      this.show(leaf.id);
      remember();
    });
    const texts = [`leaf ${leaf.id}`, leaf.title];
    for (const one of leaf.variants) {
      const counters = one.counters.map((counter) => `${counter.name} ${counter.text}`);
      texts.push(one.title, one.kernel, ...counters, ...(one.sources || []));
    }
    this.marks.push({ element, tree, leaf: leaf.id, own: texts.join("\n").toLowerCase() });
    return element;
  }

  /** Hide what neither has the words searched for nor stands above or below something that has. */
  find() {
    const asked = this.search.value.toLowerCase().trim();
    const hits = this.marks.filter((mark) => asked && mark.own.includes(asked));
    const buttons = asked ? this.hitsFor(asked) : [];
    const filters = Boolean(asked) && (hits.length > 0 || !buttons.length);
    for (const mark of this.marks) {
      const within = hits.some((hit) => mark.element.contains(hit.element) || (hit.edge && hit.element.contains(mark.element)));
      mark.element.classList.toggle("hidden", filters && !within);
      mark.element.classList.toggle("hit", hits.includes(mark) && !mark.edge);
      if (asked && within && mark.element.tagName === "DETAILS") mark.element.open = true;
    }
    this.hits.replaceChildren(...buttons.slice(0, MOST_HITS));
    if (buttons.length > MOST_HITS) this.hits.append(`and ${buttons.length - MOST_HITS} more`);
    this.found.textContent = asked ? `${hits.length + buttons.length} found` : "";
  }

  /** Walk the tree at the numbers of the fields, and light up the way. */
  update() {
    const values = this.values();
    const fits = (gpu) => this.schedule.gpus.some(([, names, limits]) =>
      names.includes(gpu) && limits.every(([name, number]) => values.has(name) && Walk.text(values.get(name)) === number));
    this.gpu.value = [this.gpu.value, ...this.schedule.gpus.flatMap(([, names]) => names)].find(fits) || "";
    const found = (this.selection = Walk.select(this.schedule, values));
    const sides = new Map();
    let tree = found.end && this.schedule.root;
    for (const accepted of found.path) {
      sides.set(tree, accepted ? "accept" : "refuse");
      tree = tree[sides.get(tree)];
    }
    let lit = null;
    for (const mark of this.marks.filter((one) => !one.edge)) {
      const side = sides.get(mark.tree);
      mark.element.classList.toggle("taken", Boolean(side) || mark.tree === found.end);
      for (const one of ["accept", "refuse"]) {
        if (mark[one]) mark[one].classList.toggle("taken", side === one);
      }
      if (mark.numbers) mark.numbers.textContent = side ? this.numbersOf(mark.tree.condition, side) : "";
      if (mark.tree === found.end) lit = mark.element;
    }
    this.say(found);
    this.chart.draw(values);
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
    else if (found.outside.length) verdict.replaceChildren(`No leaf: the tree does not apply to these values. ${serial}`, list(found.outside.map(code)));
    else if (!found.leaf) verdict.replaceChildren(`No leaf: ${found.region}. ${serial}`);
    else {
      const leaf = schedule.leaves[found.leaf - 1];
      const one = leaf.variants[found.variant - 1];
      const why = [
        ...found.passed.map(([number, failed]) => [`variant ${number}`, failed]),
        ...Object.entries(found.violated).map(([number, failed]) => [`leaf ${number}`, failed]),
      ].map(([name, failed]) => make("span", {}, `not ${name}: `, code(failed.join("; "))));
      verdict.replaceChildren(make("b", {}, `leaf ${leaf.id}`), ` (${leaf.title}) is chosen, variant ${one.number}: `, code(one.kernel), list(why));
    }
  }

  /** The variants of a leaf, in order; the one that runs now is marked, and open. */
  variantsOf(leaf) {
    const { selection } = this;
    return leaf.variants.map((one) => {
      const runs = selection.leaf === leaf.id && selection.variant === one.number;
      const rows = one.counters.map((counter) => {
        const number = runs ? selection.estimates[counter.name] : undefined;
        const value = number === undefined || number === counter.text ? counter.text : `${counter.text} = ${number}`;
        return make("tr", {}, make("th", { scope: "row" }, counter.name), make("td", {}, code(value)));
      });
      const parts = [make("summary", {}, `variant ${one.number}: ${one.title} `, code(one.kernel))];
      if (one.limits.length) parts.push(make("h4", {}, "Runs if"), list(one.limits.map((limit) => worded(limit, this.meanings))));
      parts.push(make("table", {}, make("tbody", {}, ...rows)));
      if (one.sources) parts.push(this.sourcesOf(one));
      return make("details", { className: runs ? "variant taken" : "variant", open: runs || leaf.variants.length === 1 }, ...parts);
    });
  }

  /** The texts of a variant, made when they are asked for. */
  sourcesOf(variant) {
    const panes = make("div", { className: "sources" });
    const element = folded("program and kernel", panes);
    const pane = (title, side) => make("div", {}, make("h4", {}, title), make("pre", { tabIndex: 0, ariaLabel: title }, ...words(variant.sources[side], variant.spans[side])));
    element.addEventListener("toggle", () => {
      this.opened[element.open ? "add" : "delete"](variant.kernel);
      if (element.open && !panes.children.length) panes.append(pane("MetaFork", 0), pane("Kernel", 1));
    });
    element.open = this.opened.has(variant.kernel);
    return element;
  }

  /** The nearest point that chooses a leaf on this GPU, of those with other powers of two for two parameters. */
  nearest(id) {
    const values = this.values();
    const names = [...values.keys()].filter((name) => this.fields.get(name).stepped);
    const far = (name, number) => Math.abs(Math.log2(number) - Math.log2(Math.max(1, Number(values.get(name).n))));
    const points = names.flatMap((one, at) => names.slice(at).flatMap((other) => POWERS.flatMap((x) => POWERS.map((y) => {
      const pairs = new Map([[one, x], [other, y]]); // of one name the last counts
      return { pairs, distance: [...pairs].reduce((sum, pair) => sum + far(...pair), 0) };
    }))));
    const chosen = ({ pairs }) => {
      const point = new Map(values);
      for (const [name, number] of pairs) point.set(name, Walk.parse(number));
      return Walk.choose(this.schedule, point).leaf === id;
    };
    const found = points.sort((a, b) => a.distance - b.distance).find(chosen);
    return found && [...found.pairs];
  }

  show(id) {
    const leaf = this.schedule.leaves[id - 1];
    if (!leaf) return;
    this.shown = id;
    const { selection } = this;
    for (const mark of this.marks) {
      if (mark.leaf) mark.element.classList.toggle("shown", mark.leaf === id);
    }
    const example = make("button", { type: "button" }, "go there");
    example.addEventListener("click", () => {
      const near = this.nearest(id);
      this.take(near || leaf.witness.filter(([name]) => this.fields.has(name)), near ? this.gpu.value : "");
      this.update();
      remember();
    });
    const heading = make("h3", {}, `leaf ${leaf.id}: ${leaf.title} `, ...(selection.leaf === id ? [] : [example]));
    const cases = leaf.systems.map((system) => {
      const all = system.flatMap((one) => [" and ", worded(one, this.meanings)]).slice(1);
      return make("span", {}, ...(all.length ? all : ["always"]));
    });
    const exact = leaf.systems.map((system) => code(system.map((one) => one.exact || one.text).join(" and ")));
    const parts = [heading, make("h4", {}, cases.length > 1 ? "Chosen in any of these cases" : "Chosen when"), list(cases)];
    if (leaf.systems.some((system) => system.some((one) => one.exact))) parts.push(folded("exactly, as in the tree's JSON", list(exact)));
    const violated = selection.violated && selection.violated[id];
    if (violated) parts.push(make("h4", {}, "Not chosen now"), list(violated.map(code)));
    parts.push(make("h4", {}, "Variants: the first runs whose limits hold"), ...this.variantsOf(leaf));
    this.leaf.replaceChildren(...parts);
  }
}

const VIEWS = new Map(); // by schedule, made when they are first shown
const message = make("p", { role: "status", className: "warning" });
const links = DATA.schedules.map((one) => make("a", {}, `${one.name} (${one.leaves.length} ${one.leaves.length === 1 ? "leaf" : "leaves"})`));
const stage = make("div", {});
let view = null;

const viewOf = (schedule) => {
  if (!VIEWS.has(schedule)) VIEWS.set(schedule, new ScheduleView(schedule));
  return VIEWS.get(schedule);
};

/** Show the state of the address. */
const arrive = () => {
  const fragment = location.hash;
  if (view && fragment === Link.write(view.state())) return;
  message.textContent = "";
  let state = { schedule: DATA.schedules[0] };
  try {
    if (fragment) state = Link.read(fragment, DATA.schedules);
  } catch (error) {
    message.textContent = `The part of the address after # is ignored: ${error.message}.`;
    if (view) return;
  }
  view = viewOf(state.schedule);
  view.apply(state);
  stage.replaceChildren(view.element);
  links.forEach((link, at) => {
    link.href = `#/${encodeURIComponent(DATA.schedules[at].name)}`;
    link.ariaCurrent = DATA.schedules[at] === state.schedule ? "page" : null;
  });
};

/** Put the state into the address, as a step that the back button undoes, unless a number is wrong. */
function remember() {
  if ([...view.fields.values()].some((field) => field.value() === null)) return;
  const fragment = Link.write(view.state());
  if (fragment !== location.hash) location.hash = fragment;
}

document.body.append(make("h1", {}, DATA.source));
if (links.length > 1) document.body.append(make("nav", {}, ...links));
document.body.append(message, stage);
if (DATA.schedules.length) {
  window.addEventListener("hashchange", arrive);
  arrive();
} else stage.append("There is no meta_schedule in this file.");
