/**
 * Previews: what a link leads to, beside the link, while the pointer rests on it or the keyboard is at it. Figures,
 * equations, citations, glossary terms, theorems and sections of the book, on the same page or on another one. A page that
 * was opened from a folder cannot read other pages, and previews its own only. Nothing on touch screens.
 *
 * And symbols: for what is under the pointer in a formula, its row of the page of notation (symbols.js holds them all).
 */
(() => {
  if (!matchMedia("(hover: hover) and (pointer: fine)").matches) return;

  const WAIT = 250; // ms on a link before its preview comes, and after it before the preview goes
  const LINKS = "article a.reference.internal[href*='#'], article .citation-reference a[href*='#']";
  const LONGEST = 700; // characters of a paragraph

  const pages = new Map();
  let [timer, shown, wanted] = [0, null, null];

  const tip = document.createElement("div");
  tip.className = "rbal-preview bd-article";
  tip.id = "rbal-preview";
  tip.setAttribute("role", "tooltip");
  tip.hidden = true;

  /** The document that holds a link's target: this one, or another of the book, read once. */
  function pageOf(url) {
    if (url.pathname === location.pathname) return document;
    if (location.protocol === "file:" || url.origin !== location.origin) return null;
    const address = url.origin + url.pathname;
    if (!pages.has(address))
      pages.set(
        address,
        fetch(address)
          .then((response) => (response.ok ? response.text() : ""))
          .then((text) => {
            const page = new DOMParser().parseFromString(text, "text/html");
            for (const image of page.querySelectorAll("img[src], source[srcset]")) {
              const name = image.hasAttribute("srcset") ? "srcset" : "src";
              image.setAttribute(name, new URL(image.getAttribute(name), address).href);
            }
            return page;
          })
          .catch(() => null),
      );
    return pages.get(address);
  }

  /** A copy of a part of a page: without ids, which are there already, and without links to stop at. */
  function copy(node) {
    const clone = node.cloneNode(true);
    for (const part of clone.querySelectorAll("a.headerlink, script, details, .backrefs, mjx-assistive-mml")) part.remove();
    for (const part of [clone, ...clone.querySelectorAll("[id]")]) part.removeAttribute("id");
    for (const link of clone.querySelectorAll("a")) {
      const text = document.createElement("span");
      text.append(...link.childNodes);
      link.replaceWith(text);
    }
    return clone;
  }

  /** What to show of a target: pieces of its page. */
  function piecesOf(target) {
    if (target.matches("dt")) return [target, target.nextElementSibling].filter(Boolean);
    const whole = target.closest("figure, .math, .citation, .admonition, .proof, .exercise, table");
    if (whole) return [whole];
    const inner = target.querySelector(":scope > figure, :scope > .math");
    if (inner && !target.matches("section")) return [inner];
    const section = target.matches("section") ? target : target.nextElementSibling;
    const block = target.matches("span, div") && section?.matches("figure, .math, table, .admonition, div.cell") ? section : null;
    if (block) return [block.querySelector("figure") ?? block];
    const home = target.closest("section");
    if (!home) return [target];
    const heading = home.querySelector("h1, h2, h3, h4");
    const first = [...home.children].find((node) => node.matches("p") && node.textContent.length > 40);
    return [heading, first].filter(Boolean);
  }

  /**
   * What a part of a typeset formula consists of, without its layout: characters, and which stands above or below which.
   * What MathJax has made of the same symbol has the same key everywhere.
   */
  function keyOf(node) {
    const name = node.localName;
    if (name === "mjx-c") return `${node.className} `;
    if (/^mjx-(spacer|mspace|assistive-mml)$/.test(name)) return "";
    const inside = [...node.children].map(keyOf).join("");
    return /^mjx-(msub|msup|msubsup|mover|munder|script|over|base)$/.test(name) ? `${name}(${inside})` : inside;
  }

  const RAISED = "mjx-msub, mjx-msup, mjx-msubsup, mjx-mover, mjx-munder";
  // + − ± * ⋆ ′: what makes another symbol of a letter; any other superscript is a power, or a transposed matrix
  const MARK = /^mjx-script\(mjx-c(2B|2212|B1|2217|2A|22C6|2032)\b[^ ]*( TEX-\S+)? \)$/;
  const page = location.pathname.replace(/^.*\//, "").replace(/\.html$/, "");
  const rowOf = new WeakMap(); // elements of formulas whose row was found
  let symbols = null;

  /** Rows by the keys of their symbols, made when the pointer first comes to a formula. */
  function rows() {
    if (symbols || !window.MathJax?.tex2chtml) return symbols ?? new Map();
    symbols = new Map();
    for (const row of window.rbalSymbols ?? []) {
      if ((row.only && !row.only.includes(page)) || row.never?.includes(page)) continue;
      for (const tex of row.names) {
        const key = keyOf(window.MathJax.tex2chtml(tex));
        if (!symbols.has(key)) symbols.set(key, row);
      }
    }
    return symbols;
  }

  /** The largest part of a formula around an element that has a row, or null: κ in κ², but not in κ with an index. */
  function symbolAt(element) {
    let [node, found] = [element.closest("mjx-mi, mjx-mo, mjx-mn"), null];
    if (!node?.closest("article mjx-container")) return null;
    for (; !node.matches("mjx-math"); node = node.parentElement) {
      if (!node.matches(`mjx-mi, ${RAISED}`)) continue;
      const row = rows().get(keyOf(node));
      const power = node.matches("mjx-msup") && !MARK.test(keyOf(node.querySelector(":scope > mjx-script")));
      if (row) rowOf.set((found = node), row);
      else if (node.matches(RAISED) && !power) found = null;
    }
    return found;
  }

  async function find(link) {
    if (rowOf.has(link)) {
      const box = document.createElement("div");
      box.innerHTML = rowOf.get(link).html; // our own, from the build
      return [...box.children];
    }
    const url = new URL(link.href);
    const page = await pageOf(url);
    const target = page?.getElementById(decodeURIComponent(url.hash.slice(1)));
    if (!target || target.matches("main, article, body")) return null;
    const pieces = piecesOf(target).map(copy);
    for (const piece of pieces)
      if (piece.matches("p") && piece.textContent.length > LONGEST && !piece.querySelector(".math"))
        piece.textContent = `${piece.textContent.slice(0, LONGEST).replace(/\s\S*$/, "")} …`;
    return pieces.some((piece) => piece.textContent.trim() || piece.querySelector("img")) ? pieces : null;
  }

  /** Below the link, or above it where there is more room, and never out of the window. */
  function place(link) {
    const at = link.getClientRects()[0];
    if (!at) return;
    const [width, height] = [tip.offsetWidth, tip.offsetHeight];
    const below = innerHeight - at.bottom;
    const top = below > height + 12 || below > at.top ? at.bottom + 6 : at.top - height - 6;
    tip.style.left = `${Math.max(8, Math.min(at.left, document.documentElement.clientWidth - width - 8)) + scrollX}px`;
    tip.style.top = `${Math.max(top, 4) + scrollY}px`;
  }

  async function show(link) {
    wanted = link;
    const pieces = await find(link);
    if (wanted !== link || !pieces) return;
    tip.replaceChildren(...pieces);
    tip.hidden = false;
    if (!tip.isConnected) document.body.append(tip);
    shown?.removeAttribute("aria-describedby");
    link.setAttribute("aria-describedby", tip.id);
    link.removeAttribute("title"); // the browser would show a second preview
    shown = link;
    place(link);
    // formulas of another page are not set yet
    if (tip.querySelector(".math:not(:has(mjx-container))")) await window.MathJax?.typesetPromise?.([tip]);
    if (shown === link) place(link);
  }

  function hide() {
    clearTimeout(timer);
    wanted = null;
    shown?.removeAttribute("aria-describedby");
    shown = null;
    tip.hidden = true;
  }

  const later = (work) => {
    clearTimeout(timer);
    timer = setTimeout(work, WAIT);
  };
  const linkAt = (event) => (event.target instanceof Element ? event.target.closest(LINKS) : null);
  const symbolUnder = (event) => (event.target instanceof Element ? symbolAt(event.target) : null);

  document.addEventListener("mouseover", (event) => {
    const link = linkAt(event) ?? symbolUnder(event);
    if (link && link === shown) clearTimeout(timer);
    else if (link) later(() => show(link));
    else if (tip.contains(event.target)) clearTimeout(timer);
    else if (shown || wanted || timer) later(hide);
  });
  document.addEventListener("focusin", (event) => {
    const link = linkAt(event);
    if (link?.matches(":focus-visible")) show(link);
    else if (shown) hide();
  });
  document.addEventListener("focusout", (event) => linkAt(event) && hide());
  document.addEventListener("keydown", (event) => event.key === "Escape" && hide());
  document.addEventListener("click", (event) => tip.contains(event.target) || hide());
})();
