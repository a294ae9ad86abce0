// Keeps a page up to date: fetches it again and replaces the parts that have changed. Opened details, the focus, typed
// text and scroll positions are kept. Pages work without this script, but do not update.
"use strict";
(() => {
  const main = document.getElementById("content");
  const status = document.getElementById("news");
  let every = interval(main);
  const loadingPause = 10000;
  let loadedAt = 0;
  let tag = "";
  let failures = 0;

  function interval(part) {
    return 1000 * Number(part?.dataset.refresh || 0);
  }

  function openIds(part) {
    return [...part.querySelectorAll("details[open][id]")].map((element) => element.id);
  }

  function replaceContent(old, fresh) {
    const open = openIds(old);
    const focused = old.contains(document.activeElement) ? path(old, document.activeElement) : null;
    const filled = [...old.querySelectorAll("input, select")].map((field) => [field.value, field.checked]);
    const scrolls = [...old.querySelectorAll(".wide")].map((box) => box.scrollLeft);
    old.replaceChildren(...fresh.childNodes);
    for (const id of open) document.getElementById(id)?.setAttribute("open", "");
    const fields = [...old.querySelectorAll("input, select")];
    if (fields.length === filled.length) fields.forEach((field, i) => { [field.value, field.checked] = filled[i]; });
    [...old.querySelectorAll(".wide")].forEach((box, i) => { box.scrollLeft = scrolls[i] || 0; });
    if (focused) follow(old, focused)?.focus({ preventScroll: true });
  }

  function path(root, element) {
    const steps = [];
    for (let at = element; at !== root; at = at.parentElement) steps.unshift([...at.parentElement.children].indexOf(at));
    return steps;
  }

  function follow(root, steps) {
    return steps.reduce((at, step) => at?.children[step], root);
  }

  function showStatus(words) {
    if (status && status.textContent !== words) status.textContent = words;
  }

  function parts(page) {
    return [...page.querySelectorAll("main [data-live]")];
  }

  function names(elements) {
    return elements.map((element) => element.id).join(" ");
  }

  // Returns whether anything has changed.
  function update(page) {
    const live = parts(document);
    if (names(live) !== names(parts(page))) {  // a task is done, or the first result exists
      replaceContent(main, page.getElementById("content"));
      loadedAt = 0;
      return true;
    }
    let changed = false;
    for (const old of live) {
      const fresh = page.getElementById(old.id);
      if (fresh.innerHTML === old.dataset.seen) continue;
      if (old.dataset.seen !== undefined || fresh.innerHTML !== old.innerHTML) {
        replaceContent(old, fresh.cloneNode(true));
        changed = true;
      }
      old.dataset.seen = fresh.innerHTML;
    }
    return changed;
  }

  async function poll() {
    if (!document.hidden) {
      try {
        const answer = await fetch(location.href, { headers: tag ? { "If-None-Match": tag } : {}, cache: "no-store" });
        if (answer.status === 403) return showStatus("Access denied: open the address that `leeward serve` printed.");
        if (answer.ok) {
          tag = answer.headers.get("ETag") || "";
          const page = new DOMParser().parseFromString(await answer.text(), "text/html");
          every = interval(page.getElementById("content")) || every;
          const changed = update(page);
          document.title = page.title;
          if (changed && Date.now() > loadedAt + loadingPause) loadParts();
        }
        failures = 0;
        showStatus(answer.ok || answer.status === 304 ? "" : `No update: the server returned ${answer.status}.`);
      } catch {
        failures += 1;
        if (failures > 1) showStatus("The dashboard does not respond; it may have been stopped.");
      }
    }
    setTimeout(poll, failures ? Math.min(2000 * failures, 30000) : every);
  }

  async function load(part) {
    try {
      const answer = await fetch(part.dataset.load);
      if (!answer.ok) throw new Error(String(answer.status));
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const fresh = page.getElementById(part.id);
      if (fresh) replaceContent(part, fresh);
    } catch {
      part.querySelector(".wait")?.replaceChildren("This part could not be loaded.");
    }
  }

  function loadParts() {
    loadedAt = Date.now();
    document.querySelectorAll("[data-load]").forEach(load);
  }

  loadParts();
  if (every > 0) setTimeout(poll, every);
})();
