/**
 * A figure as PNG and a table as CSV, made in the page.
 * @module
 */

const PROPERTIES = [
  "fill",
  "fill-opacity",
  "stroke",
  "stroke-opacity",
  "stroke-width",
  "stroke-dasharray",
  "font-family",
  "font-size",
  "font-weight",
  "font-style",
];

/** A copy of an SVG that needs no style sheet. */
function standalone(svg) {
  const copy = svg.cloneNode(true);
  const originals = svg.querySelectorAll("*");
  copy.querySelectorAll("*").forEach((node, k) => {
    const style = getComputedStyle(originals[k]);
    node.setAttribute(
      "style",
      PROPERTIES.map((p) => `${p}:${style.getPropertyValue(p)}`)
        .join(";")
        .replaceAll('"', "'"),
    );
  });
  copy.querySelector(".x-hover")?.remove();
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  return new XMLSerializer().serializeToString(copy);
}

async function picture(svg) {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(standalone(svg))}`;
  await image.decode();
  return image;
}

/** The plots, one below the other, at twice their size on screen. */
export async function toPng(svgs, scale = 2) {
  const images = await Promise.all(svgs.map(picture));
  const sizes = svgs.map((svg) => ({
    width: Number(svg.getAttribute("width")),
    height: Number(svg.getAttribute("height")),
  }));
  const pad = 12;
  const canvas = document.createElement("canvas");
  canvas.width = scale * (Math.max(...sizes.map((s) => s.width)) + 2 * pad);
  canvas.height = scale * (sizes.reduce((sum, s) => sum + s.height, 0) + 2 * pad);
  const context = canvas.getContext("2d");
  context.fillStyle = getComputedStyle(svgs[0]).getPropertyValue("--x-ground").trim() || "#fff";
  context.fillRect(0, 0, canvas.width, canvas.height);
  let top = pad;
  images.forEach((image, k) => {
    context.drawImage(image, scale * pad, scale * top, scale * sizes[k].width, scale * sizes[k].height);
    top += sizes[k].height;
  });
  return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
}

/** Rows with a header, and above them the setting they belong to. */
export function toCsv(header, rows, state) {
  const cell = (value) => (/[",\n]/.test(String(value)) ? `"${String(value).replaceAll('"', '""')}"` : String(value));
  const setting = Object.entries(state).map(
    ([key, value]) => `# ${key} = ${Array.isArray(value) ? value.join(" ") : value}`,
  );
  const text = [...setting, header.map(cell).join(","), ...rows.map((row) => row.map(cell).join(","))].join("\n");
  return new Blob([text, "\n"], { type: "text/csv;charset=utf-8" });
}

/** Hand a blob to the reader under a name. */
export function save(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
