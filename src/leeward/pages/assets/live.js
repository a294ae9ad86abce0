// Keeps a page up to date: fetches it again and replaces the parts that have changed. What the user has opened, focused
// or typed stays. Pages work without this script, but do not update.
"use strict";
(() => {
  const main = document.getElementById("content");
  const news = document.getElementById("news");
  let every = pace(main);
  const loadingPause = 10000;
  let loadedAt = 0;
  let tag = "";
  let failures = 0;

  function pace(part) {
    return 1000 * Number(part?.dataset.refresh || 0);
  }

  function opened(part) {
    return [...part.querySelectorAll("details[open][id]")].map((element) => element.id);
  }

  function put(old, fresh) {
    const open = opened(old);
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

  function say(words) {
    if (news && news.textContent !== words) news.textContent = words;
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
    if (names(live) !== names(parts(page))) {  // the page has other parts now: a task is done, or there is a first result
      put(main, page.getElementById("content"));
      loadedAt = 0;
      return true;
    }
    let changed = false;
    for (const old of live) {
      const fresh = page.getElementById(old.id);
      if (fresh.innerHTML === old.dataset.seen) continue;
      if (old.dataset.seen !== undefined || fresh.innerHTML !== old.innerHTML) {
        put(old, fresh.cloneNode(true));
        changed = true;
      }
      old.dataset.seen = fresh.innerHTML;
    }
    return changed;
  }

  async function look() {
    if (!document.hidden) {
      try {
        const answer = await fetch(location.href, { headers: tag ? { "If-None-Match": tag } : {}, cache: "no-store" });
        if (answer.status === 403) return say("Access denied: open the address that `leeward serve` printed.");
        if (answer.ok) {
          tag = answer.headers.get("ETag") || "";
          const page = new DOMParser().parseFromString(await answer.text(), "text/html");
          every = pace(page.getElementById("content")) || every;
          const changed = update(page);
          document.title = page.title;
          if (changed && Date.now() > loadedAt + loadingPause) loadParts();
        }
        failures = 0;
        say(answer.ok || answer.status === 304 ? "" : `No update: the server returned ${answer.status}.`);
      } catch {
        failures += 1;
        if (failures > 1) say("The dashboard does not respond; it may have been stopped.");
      }
    }
    setTimeout(look, failures ? Math.min(2000 * failures, 30000) : every);
  }

  async function load(part) {
    try {
      const answer = await fetch(part.dataset.load);
      if (!answer.ok) throw new Error(String(answer.status));
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const fresh = page.getElementById(part.id);
      if (fresh) put(part, fresh);
    } catch {
      part.querySelector(".wait")?.replaceChildren("This part could not be loaded.");
    }
  }

  function loadParts() {
    loadedAt = Date.now();
    document.querySelectorAll("[data-load]").forEach(load);
  }

  loadParts();
  if (every > 0) setTimeout(look, every);
})();
