// Writes dist/NOTICES.txt: the licences of the packages that are part of dist/extension.js.

import { existsSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";

const { outputs } = JSON.parse(readFileSync("dist/meta.json", "utf8"));
const inputs = Object.keys(outputs["dist/extension.js"].inputs);
const folders = new Set(
  inputs.flatMap((each) => each.match(/^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//)?.slice(1, 2) ?? []),
);
const notices = [...folders].sort().map((folder) => {
  const { name, version, license } = JSON.parse(readFileSync(path.join(folder, "package.json"), "utf8"));
  const file = ["License.txt", "LICENSE", "LICENSE.md", "License"]
    .map((each) => path.join(folder, each))
    .find(existsSync);
  return `${name} ${version} (${license})\n\n${file === undefined ? "" : readFileSync(file, "utf8")}`;
});
writeFileSync("dist/NOTICES.txt", notices.join(`\n${"-".repeat(80)}\n\n`));
