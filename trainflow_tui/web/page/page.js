"use strict";

// Links in what is drawn were written by logs and agents: a click opens none.
window.open = () => null;

// The terminal measures its cells once, when it is made: its font has to be there by then.
window.addEventListener("load", async () => {
  await document.fonts.load('16px "Roboto Mono"').catch(() => []);
  const terminal = document.createElement("script");
  terminal.src = "/static/textual.js";
  terminal.addEventListener("load", () => {
    window.onload(new Event("load"));
    document.querySelector(".xterm-helper-textarea")?.focus();
  });
  document.body.append(terminal);
});
