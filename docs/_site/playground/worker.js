// The interpreter, in a thread of its own: the page can end it at any time.
import { loadPyodide } from "../pyodide/pyodide.mjs";

async function start() {
  const python = await loadPyodide({ indexURL: new URL("../pyodide/", import.meta.url).href });
  const response = await fetch(new URL("python.zip", import.meta.url));
  if (!response.ok) throw new Error(`python.zip: ${response.status} ${response.statusText}`);
  python.unpackArchive(await response.arrayBuffer(), "zip", { extractDir: "/playground" });
  python.runPython("import sys; sys.path.insert(0, '/playground')");
  return python.pyimport("browser");
}

const started = start();

onmessage = async ({ data: { id, call, input } }) => {
  try {
    const browser = await started;
    postMessage({ id, answer: JSON.parse(browser.answer(call, JSON.stringify(input))) });
  } catch (error) {
    postMessage({ id, answer: { problem: String(error.message ?? error) } });
  }
};
