"use strict";
// Each text of class "sideways" says that the frame after it scrolls; it is hidden where everything fits.
for (const hint of document.querySelectorAll(".sideways")) {
  const frame = hint.nextElementSibling;
  const watched = new ResizeObserver(() => { hint.hidden = frame.scrollWidth <= frame.clientWidth; });
  for (const element of [frame, ...frame.children]) watched.observe(element);
}
