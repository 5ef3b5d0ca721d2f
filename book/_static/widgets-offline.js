// Loaded after require.js and before the widget manager, on pages with widgets only.

// The manager looks for its icon fonts beside the place where require.js believes each of its modules to be.
{
  const folder = new URL("vendor/html-manager", document.currentScript.src).href;
  requirejs.config({ paths: { "@jupyter-widgets/html-manager/dist": folder, "@jupyter-widgets": folder } });
}

// The manager asks MathJax to set the labels of widgets in the words of version 2; the book has version 3.
document.addEventListener("DOMContentLoaded", () => {
  if (window.MathJax?.startup && !MathJax.Hub) {
    MathJax.Hub = {
      Queue: ([, , element]) => MathJax.startup.promise.then(() => MathJax.typesetPromise([element])),
    };
  }
});
