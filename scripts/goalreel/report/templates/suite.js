"use strict";
// Plays the preview of the cell at the pointer or the focus, and sorts rows and columns.
const table = document.querySelector("table");
const [body] = table.tBodies;
const calm = matchMedia("(prefers-reduced-motion: reduce)");
let playing = null;

function play(cell) {
  if (cell === playing) return;
  for (const [one, name] of [[playing, "still"], [cell, "preview"]]) {
    const image = one?.querySelector("[data-preview]");
    if (!image) continue;
    image.src = image.dataset[name];
    one.querySelector(".play").setAttribute("aria-pressed", name === "preview");
  }
  playing = cell;
}

const playAt = (target) => !calm.matches && !target.closest(".play") && play(target.closest(".cell"));
table.addEventListener("pointerover", (event) => event.pointerType === "mouse" && playAt(event.target));
table.addEventListener("pointerleave", () => play(null));
table.addEventListener("focusin", (event) => playAt(event.target));
table.addEventListener("focusout", () => play(null));

// Returns the order of cells: by value, then by text. Cells without a value are last.
function ordered(cells, sign) {
  const values = cells.map((cell) => parseFloat(cell.dataset.value));
  const byText = (a, b) =>
    sign * cells[a].textContent.localeCompare(cells[b].textContent, "en", { numeric: true });
  return [...cells.keys()].sort((a, b) =>
    Number.isNaN(values[a]) - Number.isNaN(values[b]) || sign * (values[a] - values[b]) ||
    (values[a] === values[b] ? 0 : byText(a, b)));
}

function sort(head) {
  const isRow = head.parentNode.parentNode === body;
  const rows = [...body.rows], heads = table.tHead.rows[0];
  const place = [...head.parentNode.cells].indexOf(head);
  const isRising = head.ariaSort ? head.ariaSort === "descending" : !isRow && place === 0;
  const cells = isRow ? [...head.parentNode.cells].slice(1) : rows.map((row) => row.cells[place]);
  const order = ordered(cells, isRising ? 1 : -1);
  if (isRow) {
    for (const row of [heads, ...rows]) row.append(...order.map((old) => row.cells[old + 1]));
  } else body.append(...order.map((old) => rows[old]));
  const others = isRow ? body.querySelectorAll("[aria-sort]") : heads.querySelectorAll("[aria-sort]");
  for (const other of others) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", isRising ? "ascending" : "descending");
}

table.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (!button) return;
  if (!button.matches(".play")) sort(button.closest("th"));
  else play(button.ariaPressed === "true" ? null : button.closest(".cell"));
});
for (const button of document.querySelectorAll(".seek")) {
  button.addEventListener("click", () => {
    const film = button.closest("figure").querySelector("video");
    film.currentTime = button.dataset.start;
    film.play();
  });
}
for (const link of document.querySelectorAll('[href^="#row-"]')) {
  link.addEventListener("click", () => (document.querySelector(link.hash).open = true));
}
