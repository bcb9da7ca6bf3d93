// The state of the page as the fragment of its address: #/schedule/GPU/leaf/x/y?B0=16&s=4; no part of a browser.
"use strict";

const Link = (() => {
  const write = ({ schedule, gpu, leaf, axes, values }) => {
    const pairs = [...values].map((pair) => pair.map(encodeURIComponent).join("="));
    return `#/${[schedule.name, gpu, leaf, ...axes].map(encodeURIComponent).join("/")}?${pairs.join("&")}`;
  };

  /**
   * The state that a fragment holds; what it leaves out is undefined.  `gpu` is empty if the limits are the user's own.
   * Throws an Error that says what is wrong.
   */
  const read = (fragment, schedules) => {
    const expect = (value, sentence) => {
      if (!value) throw new Error(sentence);
      return value;
    };
    const form = expect(/^#\/([^?]*)(?:\?(.*))?$/.exec(fragment), "it is not of this page");
    const [name, gpu, leaf, ...axes] = form[1].split("/").map(decodeURIComponent);
    const schedule = expect(schedules.find((one) => one.name === name), `there is no schedule ${name}`);
    const known = schedule.gpus.some(([, names]) => names.includes(gpu));
    expect(!gpu || known, `the tree is not for a GPU ${gpu}`);
    expect(!leaf || schedule.leaves.some((one) => String(one.id) === leaf), `there is no leaf ${leaf}`);
    const parameters = Walk.listed(schedule).filter((one) => !schedule.machine.includes(one));
    const different = axes.length === 2 && axes[0] !== axes[1];
    const fit = !axes.length || (different && axes.every((one) => !one || parameters.includes(one)));
    expect(fit, `the map has no axes ${axes.join(", ")}`);
    const values = new Map();
    for (const pair of (form[2] || "").split("&").filter(Boolean)) {
      const [parameter, number = ""] = pair.split("=").map(decodeURIComponent);
      expect(Walk.listed(schedule).includes(parameter), `there is no parameter ${parameter}`);
      expect(Walk.parse(number, schedule.machine.includes(parameter)), `${parameter}=${number} is not a number`);
      values.set(parameter, number);
    }
    return { schedule, gpu, leaf: leaf ? Number(leaf) : undefined, axes: axes.length ? axes : undefined, values };
  };

  return { write, read };
})();
