// The kinds of words in a text of C, CUDA, OpenCL or MetaFork, when it is shown; no part of a browser.
"use strict";

const Colours = (() => {
  const KINDS = {
    comment: /\/\/.*|\/\*[^]*?\*\//,
    text: /"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])+'/,
    directive: /^[ \t]*#.*/,
    number: /\b\d(?:[eEpP][-+]|[\w.])*/,
    type: /\b(?:void|bool|char|short|int|long|float|double|signed|unsigned|const|struct|size_t|u?int\d+_t)\b/,
    keyword: /\b(?:if|else|for|while|do|return|break|continue|sizeof|static|inline|cache|meta_\w+|__\w+|METAFORK_KERNEL)\b/,
    builtin: /\b(?:threadIdx|blockIdx|blockDim|gridDim|METAFORK_\w+)\b/,
  };
  const WORD = new RegExp(Object.entries(KINDS).map(([kind, one]) => `(?<${kind}>${one.source})`).join("|"), "gm");

  /** The parts of a text as [kind, part], the kind empty for all that has no colour. */
  const parts = (text) => {
    const found = [];
    let end = 0;
    for (const match of text.matchAll(WORD)) {
      const [kind] = Object.entries(match.groups).find(([, part]) => part !== undefined);
      found.push(["", text.slice(end, match.index)], [kind, match[0]]);
      end = match.index + match[0].length;
    }
    return [...found, ["", text.slice(end)]];
  };

  return { parts };
})();
