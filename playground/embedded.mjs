// The WebAssembly module inside a page that build.mjs made: base64 of what lzma.mjs unpacks.
export function embeddedModule(html) {
  const found = /<script type="text\/plain" id="module">([^<]*)<\/script>/.exec(html);
  if (!found) throw new Error('this page holds no module of posattn');
  return found[1];
}
