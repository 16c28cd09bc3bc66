// Light or dark, before anything is drawn: as the system has it, until someone chooses. Buttons with `data-theme-toggle`
// choose; `themechange` is told to the window, for what draws with colours of its own.
(() => {
  const KEY = "theme", root = document.documentElement, system = matchMedia("(prefers-color-scheme: dark)");
  const chosen = () => {
    try {
      return localStorage.getItem(KEY);
    } catch {
      return null;
    }
  };
  const isDark = () => (chosen() ? chosen() === "dark" : system.matches);

  function show() {
    const theme = isDark() ? "dark" : "light";
    for (const button of document.querySelectorAll("[data-theme-toggle]"))
      button.setAttribute("aria-pressed", String(theme === "dark"));
    if (root.dataset.theme === theme) return;
    root.dataset.theme = theme;
    dispatchEvent(new Event("themechange"));
  }

  function toggle() {
    const wanted = isDark() ? "light" : "dark";
    try {
      if ((wanted === "dark") === system.matches) localStorage.removeItem(KEY);
      else localStorage.setItem(KEY, wanted);
    } catch {
      // A browser that keeps nothing shows what its system has.
    }
    show();
  }

  addEventListener("click", ({ target }) => target.closest?.("[data-theme-toggle]") && toggle());
  addEventListener("storage", show);
  addEventListener("DOMContentLoaded", show);
  system.addEventListener("change", show);
  show();
})();
