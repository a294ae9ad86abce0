// What the tests ask of a page: returns what is wrong with it, in words.
const found = [];
const shown = (element) => element.checkVisibility({ visibilityProperty: true }) && element.getClientRects().length > 0;

function name(element) {
  const id = element.id ? `#${element.id}` : "";
  return `${element.localName}${id} ${(element.textContent || "").trim().slice(0, 40)}`;
}

// --- structure ---

function structure() {
  const ids = [...document.querySelectorAll("[id]")].map((element) => element.id);
  for (const id of new Set(ids.filter((each, i) => ids.indexOf(each) !== i))) found.push(`id ${id} twice`);
  for (const field of document.querySelectorAll("input:not([type=hidden]), select, textarea, button")) {
    const label = field.labels?.[0]?.textContent || field.getAttribute("aria-label") || field.textContent;
    if (!label.trim() || (field.localName !== "button" && !field.labels?.length)) found.push(`no label: ${name(field)}`);
  }
  for (const part of ["header", "main", "footer", "header nav"]) {
    if (document.querySelectorAll(`body > ${part}`).length !== 1) found.push(`not one ${part}`);
  }
  for (const nav of document.querySelectorAll("nav")) if (!nav.ariaLabel) found.push(`a nav without a name`);
  const levels = [...document.querySelectorAll("h1, h2, h3, h4")].map((heading) => Number(heading.localName[1]));
  if (levels.filter((level) => level === 1).length !== 1) found.push(`headings: ${levels}`);
  levels.reduce((before, level) => {
    if (level > before + 1) found.push(`a heading of level ${level} after ${before}`);
    return level;
  }, 0);
  for (const link of document.querySelectorAll("a[href]")) {
    if (!(link.ariaLabel || link.textContent).trim()) found.push(`a link without words: ${link.href}`);
  }
  for (const svg of document.querySelectorAll("svg:not(.swatch)")) if (!svg.ariaLabel) found.push("a picture without words");
  for (const part of document.querySelectorAll("[aria-labelledby]")) {
    if (!document.getElementById(part.getAttribute("aria-labelledby"))) found.push(`no title of ${name(part)}`);
  }
  for (const table of document.querySelectorAll("table")) {
    if (!table.caption?.textContent || !table.querySelector("th[scope]")) found.push(`a table without a name`);
  }
  for (const svg of document.querySelectorAll("svg[role=img]")) {
    const links = [...svg.querySelectorAll("a")].filter((link) => link.getAttribute("tabindex") !== "-1");
    if (links.length) found.push(`${links.length} links that are not read out`);
  }
  if (!document.title.trim() || !document.documentElement.lang) found.push("no title or no language");
}

// --- width ---

function width() {
  const page = document.documentElement;
  if (page.scrollWidth > innerWidth || innerWidth !== arguments_[1]) found.push(`${page.scrollWidth} wide, in ${innerWidth}`);
  for (const text of document.querySelectorAll("h1, h2, p, li, label, button, summary, dd, dt, header a")) {
    const box = text.getBoundingClientRect();
    const scrolls = text.closest(".wide, figure, pre, .skip");
    if (shown(text) && !scrolls && (box.right > innerWidth + 1 || box.left < -1)) found.push(`cut off: ${name(text)}`);
  }
}

// --- contrast, after WCAG 2.1 ---

function light(colour) {
  const parts = colour.map((part) => part / 255).map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
  return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
}

function parts(css) {
  const numbers = css.match(/[\d.]+/g)?.map(Number) || [];
  return numbers.length === 4 && numbers[3] === 0 ? null : numbers.slice(0, 3);
}

function behind(element) {
  for (let at = element; at; at = at.parentElement) {
    const colour = parts(getComputedStyle(at).backgroundColor);
    if (colour) return colour;
  }
  return [255, 255, 255];
}

// Within a drawing also what is drawn before it in the same place: areas and bands.
function grounds(element) {
  const svg = element.closest("svg");
  const drawn = svg ? [...svg.querySelectorAll(".area, .band")].map((each) => parts(getComputedStyle(each).fill)) : [];
  return [behind(element), ...drawn.filter(Boolean)];
}

function contrast() {
  let checked = 0;
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    const is_text = walker.currentNode.textContent.trim() && !element.closest("title, option, script");
    if (!is_text || !shown(element)) continue;
    const style = getComputedStyle(element);
    const ink = light(parts(element.namespaceURI.endsWith("svg") ? style.fill : style.color));
    for (const ground of grounds(element)) {
      const [low, high] = [ink, light(ground)].sort((a, b) => a - b);
      const ratio = (high + 0.05) / (low + 0.05);
      checked += 1;
      if (ratio < 4.5) found.push(`${ratio.toFixed(2)}: ${name(element)}`);
    }
  }
  if (checked < 10) found.push(`only ${checked} texts were looked at`);
}

const arguments_ = arguments;
({ structure, width, contrast })[arguments[0]]();
return found;
