// Brings the live parts of a page up to date: asks for the page again, and puts in the parts that have changed. What
// somebody has opened, focused or typed stays. Without this script every page works, and is as old as its loading.
"use strict";
(() => {
  const main = document.getElementById("content");
  const news = document.getElementById("news");
  const every = 1000 * Number(main?.dataset.refresh || 0);
  let tag = "";
  let failures = 0;
  let looks = 0;

  function opened(part) {
    return [...part.querySelectorAll("details[open][id]")].map((element) => element.id);
  }

  function put(old, fresh) {
    const open = opened(old);
    const focused = old.contains(document.activeElement) ? path(old, document.activeElement) : null;
    const scrolls = [...old.querySelectorAll(".wide")].map((box) => box.scrollLeft);
    old.replaceChildren(...fresh.childNodes);
    for (const id of open) document.getElementById(id)?.setAttribute("open", "");
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

  async function look() {
    if (!document.hidden) {
      try {
        const answer = await fetch(location.href, { headers: tag ? { "If-None-Match": tag } : {}, cache: "no-store" });
        if (answer.status === 403) return say("This page is not allowed any more: open the address that was printed.");
        if (answer.ok) {
          tag = answer.headers.get("ETag") || "";
          const page = new DOMParser().parseFromString(await answer.text(), "text/html");
          for (const old of document.querySelectorAll("[data-live]")) {
            const fresh = page.getElementById(old.id);
            if (fresh && fresh.innerHTML !== old.dataset.seen) {
              if (old.dataset.seen !== undefined || fresh.innerHTML !== old.innerHTML) put(old, fresh.cloneNode(true));
              old.dataset.seen = fresh.innerHTML;
            }
          }
          document.title = page.title;
        }
        failures = 0;
        looks += 1;
        if (looks % 15 === 0) document.querySelectorAll("[data-load]").forEach(load);
        say("");
      } catch {
        failures += 1;
        if (failures > 1) say("The dashboard does not answer; it may have been stopped.");
      }
    }
    setTimeout(look, every * Math.min(1 + failures, 10));
  }

  async function load(part) {
    try {
      const answer = await fetch(part.dataset.load);
      if (!answer.ok) throw new Error(String(answer.status));
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const fresh = page.getElementById(part.id);
      if (fresh && fresh.innerHTML !== part.dataset.seen) {
        part.dataset.seen = fresh.innerHTML;
        put(part, fresh);
      }
    } catch {
      part.querySelector(".wait")?.replaceChildren("This part could not be loaded.");
    }
  }

  document.querySelectorAll("[data-load]").forEach(load);
  if (every > 0) setTimeout(look, every);
})();
