// Enlarges frames and searches names. Widths and places are shares of the whole picture.
(() => {
  const svg = document.querySelector("svg");
  const part = (id) => document.getElementById(id);
  const [margin, inner, letter, wait] = [10, 1180, 6.65, 0.25];
  const frames = [...svg.querySelectorAll("#frames > g")].map((group) => ({
    group,
    rect: group.querySelector("rect"),
    text: group.querySelector("text"),
    name: group.dataset.n,
    left: Number(group.dataset.l),
    width: Number(group.dataset.w),
  }));
  const label = (name, width) => {
    const room = Math.max(0, Math.floor((width - 6) / letter));
    if (name.length <= room) return name;
    return room < 3 ? "" : name.slice(0, room - 1) + "…";
  };
  // Shows what lies between `from` and `from + width`.
  const show = (from, width, chosen) => {
    const to = from + width;
    const near = 1e-6;
    const row = chosen ? Number(chosen.rect.getAttribute("y")) : -1;
    for (const one of frames) {
      const end = one.left + one.width;
      const around = one.left <= from + near && end >= to - near;
      const inside = one.left >= from - near && end <= to + near;
      const below = Number(one.rect.getAttribute("y")) > row;
      const part = (one.width / width) * inner;
      const seen = around ? !chosen || below || one === chosen : inside && part >= wait;
      one.group.style.display = seen || (inside && around) ? "" : "none";
      one.group.classList.toggle("past", Boolean(chosen) && around && one !== chosen && below);
      const x = margin + Math.max(0, (one.left - from) / width) * inner;
      const drawn = around ? inner : part;
      one.rect.setAttribute("x", x.toFixed(2));
      one.rect.setAttribute("width", Math.max(drawn - 0.5, 0.2).toFixed(2));
      one.text.setAttribute("x", (x + 3).toFixed(2));
      one.text.textContent = label(one.name, drawn);
    }
    part("all").textContent = chosen ? "show all" : "";
  };
  const all = () => show(0, 1, null);
  // Marks frames by name; what is found inside of what is found counts once.
  const find = () => {
    const asked = window.prompt("Function, as a regular expression; nothing ends the search", "");
    if (asked === null) return;
    let wanted = null;
    try {
      wanted = asked === "" ? null : new RegExp(asked);
    } catch (error) {
      part("foundShare").textContent = String(error.message);
      return;
    }
    const found = frames.filter((one) => wanted !== null && wanted.test(one.name));
    for (const one of frames) one.group.classList.toggle("found", found.includes(one));
    let [sum, reached] = [0, 0];
    for (const one of found.slice().sort((a, b) => a.left - b.left || b.width - a.width)) {
      const end = one.left + one.width;
      sum += Math.max(0, end - Math.max(reached, one.left));
      reached = Math.max(reached, end);
    }
    const foundShare = `${asked}: ${found.length} frames, ${(sum * 100).toFixed(2)}% of the whole`;
    part("foundShare").textContent = wanted === null ? "" : foundShare;
  };
  for (const one of frames) {
    one.group.addEventListener("click", () => show(one.left, one.width, one));
  }
  part("all").addEventListener("click", all);
  part("find").textContent = "search";
  part("find").addEventListener("click", find);
  window.addEventListener("keydown", (event) => {
    if (event.key === "Escape") all();
    if (event.key === "/" || ((event.ctrlKey || event.metaKey) && event.key === "f")) {
      event.preventDefault();
      find();
    }
  });
  svg.classList.add("live");
})();
