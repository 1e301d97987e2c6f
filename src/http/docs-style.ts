/** The style sheet of the documentation page. */
export const pageStyle = `
:root { color-scheme: light dark; --line: #d5dae1; --soft: #f4f6f8; --text: #1c2733; --dim: #5b6875; --link: #0b5cad; --get: #0b6e4f; --post: #0b5cad; --put: #8a5a00; --delete: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --line: #333c47; --soft: #1c232b; --text: #dfe6ee; --dim: #97a3b0; --link: #7db7f5; --get: #5cc9a0; --post: #7db7f5; --put: #e0b050; --delete: #f28b82; } body { background: #12171d; } }
* { box-sizing: border-box; }
body { margin: 0; display: grid; grid-template-columns: 19rem minmax(0, 1fr); font: 15px/1.5 system-ui, sans-serif; color: var(--text); }
nav { position: sticky; top: 0; height: 100vh; overflow-y: auto; padding: 1rem 1rem 3rem; border-right: 1px solid var(--line); font-size: 13px; }
nav ul { list-style: none; margin: 0 0 .6rem; padding: 0; }
nav li a { display: flex; gap: .5rem; padding: .12rem 0; color: inherit; }
main { padding: 1.2rem 2rem 6rem; max-width: 62rem; }
h1 { font-size: 1.7rem; margin: .2rem 0 .6rem; } h2 { margin: 2.4rem 0 .6rem; font-size: 1.25rem; } h3 { font-size: .95rem; margin: 1.1rem 0 .3rem; } nav h2 { font-size: .8rem; margin: 1rem 0 .2rem; text-transform: uppercase; letter-spacing: .04em; color: var(--dim); }
a { color: var(--link); text-decoration: none; } a:hover { text-decoration: underline; }
code, .path { font: 13px/1.5 ui-monospace, SFMono-Regular, Menlo, monospace; } code { background: var(--soft); border-radius: 3px; padding: .05rem .25rem; overflow-wrap: anywhere; }
pre { background: var(--soft); padding: .8rem 1rem; border-radius: 6px; overflow-x: auto; } pre code { padding: 0; background: none; }
details { border: 1px solid var(--line); border-radius: 6px; margin: .5rem 0; } details > summary { cursor: pointer; padding: .5rem .8rem; display: flex; flex-wrap: wrap; gap: .2rem .7rem; align-items: baseline; }
details > div { padding: 0 1rem 1rem; border-top: 1px solid var(--line); } details:has(:target) { border-color: var(--link); } :target { scroll-margin-top: 4rem; }
.path { overflow-wrap: anywhere; } .dim { color: var(--dim); } .method { font: 700 11px/1.6 ui-monospace, monospace; width: 3.4rem; flex: none; text-transform: uppercase; }
.get { color: var(--get); } .post { color: var(--post); } .put, .patch { color: var(--put); } .delete { color: var(--delete); }
table { border-collapse: collapse; width: 100%; font-size: 14px; } td { border-top: 1px solid var(--line); padding: .3rem .6rem .3rem 0; vertical-align: top; } td:first-child { width: 15rem; } td table td:first-child { width: 12rem; } .type { color: var(--dim); }
@media (max-width: 52rem) { body { display: block; } nav { position: static; height: auto; border-right: 0; border-bottom: 1px solid var(--line); } main { padding: 1rem; } td:first-child { width: 9rem; } }
`;
