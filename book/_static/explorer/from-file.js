// Browsers load no modules from a file. A page opened from a folder gets the same explorers as one plain script, which the
// build writes beside this one (tools/bundle.py).
if (location.protocol === "file:") {
  const script = document.createElement("script");
  script.src = new URL("bundle.js", document.currentScript.src).href;
  document.head.append(script);
}
