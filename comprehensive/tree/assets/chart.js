// The map: two parameters, or a parameter and the GPU, as axes; the colour of a cell is the variant that runs there.
"use strict";

const POWERS = Array.from({ length: 17 }, (_, exponent) => String(2 ** exponent));
const GPU = ""; // the name of the axis that no parameter can have

/** An element; `settings` are properties, `children` elements or texts. */
const make = (tag, settings = {}, ...children) => {
  const element = Object.assign(document.createElement(tag), settings);
  element.append(...children);
  return element;
};

class Chart {
  /** `go` is called with [name, number] pairs and a GPU when a cell is clicked, `turned` when the axes change. */
  constructor(schedule, go, turned) {
    Object.assign(this, { schedule, go });
    this.parameters = [...schedule.program, ...schedule.data, ...schedule.opaque];
    this.names = [...this.parameters, ...(schedule.gpus.length ? [GPU] : [])];
    this.axes = this.names.slice(0, 2);
    this.choices = this.axes.map((_, side) => {
      const options = this.names.map((name) => make("option", { value: name }, name || "GPU"));
      const choice = make("select", { ariaLabel: side ? "rows" : "columns" }, ...options);
      choice.addEventListener("change", () => {
        if (this.axes[1 - side] === choice.value) this.axes.reverse();
        else this.axes[side] = choice.value;
        turned();
      });
      return choice;
    });
    this.table = make("table", {});
    this.legend = make("ul", { className: "legend" });
    this.table.addEventListener("keydown", (event) => this.walk(event));
    this.element = make("details", { className: "chart", open: true }, make("summary", {}, "Map"));
    if (this.axes.length < 2) return;
    const head = make("p", {}, "columns ", this.choices[0], " rows ", this.choices[1], " Click a cell to go there.");
    this.element.append(head, make("div", { className: "scroll" }, this.table), this.legend);
  }

  /** The places along an axis: what is read there, and what a point has there.  GPUs of the same limits share one. */
  places(name) {
    if (name !== GPU) return POWERS.map((number) => ({ label: number, pairs: [[name, number]] }));
    const alike = new Map();
    for (const [, [gpu], pairs] of this.schedule.gpus) {
      const key = String(pairs);
      if (alike.has(key)) alike.get(key).label += `, ${gpu}`;
      else alike.set(key, { label: gpu, gpu, pairs });
    }
    return [...alike.values()];
  }

  /** Draw the map around a point; `values` as for Walk.choose. */
  draw(values) {
    if (this.axes.length < 2) return;
    this.choices.forEach((choice, side) => (choice.value = this.axes[side]));
    const moved = new Set(this.axes.flatMap((name) => this.places(name)[0].pairs.map(([symbol]) => symbol)));
    this.element.hidden = Walk.listed(this.schedule).some((name) => !moved.has(name) && !values.has(name));
    if (this.element.hidden) return;
    const [columns, rows] = this.axes.map((name) => this.places(name));
    const found = rows.map((row) => columns.map((column) => {
      const point = new Map(values);
      for (const [name, number] of [...column.pairs, ...row.pairs]) point.set(name, Walk.parse(number));
      const { leaf, variant } = Walk.choose(this.schedule, point);
      return { leaf, variant, name: leaf ? `${leaf}.${variant}` : "\u2013" };
    }));
    const here = ({ pairs }) => pairs.every(([name, number]) => values.has(name) && Walk.text(values.get(name)) === number);
    // Lines at the end that are like the one before them say nothing.
    const shown = (axis, places, like) => {
      let last = places.length - 1;
      while (axis !== GPU && last > 0 && !here(places[last]) && like(last, last - 1)) last--;
      return places.slice(0, last + 1);
    };
    const across = shown(this.axes[0], columns, (a, b) => found.every((line) => line[a].name === line[b].name));
    const down = shown(this.axes[1], rows, (a, b) => found[a].every((one, at) => one.name === found[b][at].name));
    const [x, y] = this.axes.map((name) => name || "GPU");
    const kinds = new Map();
    const line = (row, at) => make("tr", {}, make("th", { scope: "row" }, row.label), ...across.map((column, place) => {
      const one = found[at][place];
      kinds.set(one.name, one);
      const title = `${x} = ${column.label}, ${y} = ${row.label}: ${this.told(one)}`;
      const button = make("button", { type: "button", title, ariaLabel: title, tabIndex: -1 }, one.name);
      this.paint(button, one);
      if (here(column) && here(row)) button.ariaCurrent = "true";
      button.addEventListener("click", () => this.go([...column.pairs, ...row.pairs], column.gpu || row.gpu));
      return make("td", {}, button);
    }));
    const head = make("tr", {}, make("th", {}, `${y} \\ ${x}`), ...across.map((one) => make("th", { scope: "col" }, one.label)));
    const focused = this.table.contains(document.activeElement);
    this.table.replaceChildren(make("thead", {}, head), make("tbody", {}, ...down.map(line)));
    const current = this.table.querySelector("[aria-current]") || this.table.querySelector("button");
    current.tabIndex = 0;
    if (focused) current.focus();
    const sorted = [...kinds.values()].sort((a, b) => (a.leaf || Infinity) - (b.leaf || Infinity) || a.variant - b.variant);
    this.legend.replaceChildren(...sorted.map((one) => {
      const sample = make("span", {}, one.name);
      this.paint(sample, one);
      return make("li", {}, sample, ` ${this.told(one)}`);
    }));
  }

  told({ leaf, variant }) {
    if (!leaf) return "no leaf, the serial code runs";
    return `leaf ${leaf}, variant ${variant}: ${this.schedule.leaves[leaf - 1].variants[variant - 1].title}`;
  }

  /** A hue for each leaf, a shade for each of its variants. */
  paint(element, { leaf, variant }) {
    element.className = leaf ? "runs" : "serial";
    if (!leaf) return;
    const others = this.schedule.leaves[leaf - 1].variants.length - 1;
    element.style.setProperty("--hue", String((leaf * 137 + 70) % 360));
    element.style.setProperty("--shade", String((variant - 1) / Math.max(1, others)));
  }

  /** Arrow keys go from cell to cell. */
  walk(event) {
    const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
    const cell = event.target.closest("td");
    if (!step || !cell) return;
    const row = this.table.tBodies[0].rows[cell.parentNode.sectionRowIndex + step[0]];
    const next = row && row.cells[cell.cellIndex + step[1]];
    const button = next && next.querySelector("button");
    if (!button) return;
    event.preventDefault();
    event.target.tabIndex = -1;
    button.tabIndex = 0;
    button.focus();
  }
}
