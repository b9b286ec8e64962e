"use strict";
// The button says which theme it turns on; until it is pressed, the page follows the system.
{
  const root = document.documentElement;
  const button = document.getElementById("theme");
  const system = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.className ? root.className === "dark" : system.matches);
  const name = () => { button.textContent = isDark() ? "Light theme" : "Dark theme"; };
  button.addEventListener("click", () => { root.className = isDark() ? "light" : "dark"; name(); });
  system.addEventListener("change", name);
  name();
}
