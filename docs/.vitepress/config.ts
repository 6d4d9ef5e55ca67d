import { copyFileSync, cpSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { defineConfig } from 'vitepress';
import { diagrams, headingId, repositoryLinks, REWRITES, SOURCES } from './pages.js';

const docs = dirname(import.meta.dirname);
const require = createRequire(import.meta.url);
const vue = dirname(require.resolve('vue/package.json'));

/** Paths as they are in the site: see REWRITES. */
const READERS = [
  {
    text: 'You call the API',
    collapsed: false,
    items: [
      { text: 'API guide', link: '/api' },
      { text: 'Routes', link: '/routes' },
      { text: 'Errors', link: '/errors' },
      { text: 'Participant tokens', link: '/tokens' },
      { text: 'Webhooks', link: '/webhooks' },
      { text: 'Diagnoses', link: '/diagnoses' },
      { text: 'Receivers', link: '/receivers' },
      { text: 'Webhook verifier', link: '/webhook-verifier' },
      { text: 'STUN and TURN', link: '/turn' },
      { text: 'Breakouts', link: '/breakouts' },
      { text: 'Recordings', link: '/recordings' },
      { text: 'Lobby', link: '/lobby' },
      { text: 'End-to-end encryption', link: '/encryption' },
      { text: 'Encoders (WHIP)', link: '/whip' },
      { text: 'Server SDK', link: '/server-sdk' },
    ],
  },
  {
    text: 'You build a client',
    collapsed: false,
    items: [
      { text: 'React', link: '/react' },
      { text: 'Its package', link: '/react-package' },
      { text: 'Browser SDK', link: '/client-sdk' },
      { text: 'Its reference', link: '/browser-sdk-reference' },
      { text: 'Requests and streams', link: '/data' },
      { text: 'Signaling protocol', link: '/signaling' },
    ],
  },
  {
    text: 'You operate it',
    collapsed: true,
    items: [
      { text: 'Local start', link: '/local' },
      { text: 'Operations', link: '/operations' },
      { text: 'Deploy', link: '/operations/deploy' },
      { text: 'Kubernetes', link: '/operations/kubernetes' },
      { text: 'systemd', link: '/operations/systemd' },
      { text: 'Managed servers', link: '/operations/managed' },
      { text: 'Upgrade', link: '/operations/upgrade' },
      { text: 'Backup', link: '/operations/backup' },
      { text: 'Scale', link: '/operations/scale' },
      { text: 'Monitoring', link: '/operations/monitoring' },
      { text: 'Background work', link: '/operations/workers' },
      { text: 'Incidents', link: '/operations/incidents' },
      { text: 'Security', link: '/operations/security' },
      { text: 'PostgreSQL', link: '/operations/postgresql' },
      { text: 'Redis', link: '/operations/redis' },
      { text: 'Media servers', link: '/media' },
      { text: 'Console', link: '/console' },
      { text: 'Releases', link: '/release' },
      { text: 'Configuration', link: '/configuration' },
      { text: 'rtc', link: '/cli' },
      { text: 'Limits', link: '/limits' },
      { text: 'Guarantees', link: '/guarantees' },
      { text: 'Results', link: '/benchmarks' },
    ],
  },
  {
    text: 'You change the code',
    collapsed: true,
    items: [
      { text: 'Contributing', link: '/contributing' },
      { text: 'Architecture', link: '/architecture' },
      { text: 'Data model', link: '/data-model' },
      { text: 'Decisions', link: '/decisions/' },
      { text: 'Style and glossary', link: '/style' },
      { text: 'Changes', link: '/changelog' },
      { text: 'Reporting a vulnerability', link: '/reporting-a-vulnerability' },
    ],
  },
];

/** The index of the decisions leads to each of them. */
function isInNavigation(page: string): boolean {
  if (page === 'index.md' || page.startsWith('decisions/')) return true;
  return READERS.some(({ items }) => items.some(({ link }) => `${link.slice(1)}.md` === page));
}

/** The site of the documents that GitHub shows, too. `npm run docs` builds it; the API serves it at /docs. */
export default defineConfig({
  title: 'Callplane',
  description: 'Self-hosted real-time audio and video calls',
  lang: 'en',
  base: '/docs/',
  srcDir: '..',
  srcExclude: SOURCES.excluded,
  outDir: 'dist',
  rewrites: REWRITES,
  head: [['link', { rel: 'icon', href: 'data:,' }]],
  markdown: {
    anchor: { slugify: headingId },
    // Braces are braces, as on GitHub.
    attrs: false,
    config(md) {
      md.use(repositoryLinks).use(diagrams);
    },
  },
  vite: {
    resolve: {
      // Above the pages outside of this folder there is no Vue.
      alias: [
        { find: /^vue$/, replacement: join(vue, 'dist', 'vue.runtime.esm-bundler.js') },
        { find: 'vue/server-renderer', replacement: join(vue, 'server-renderer', 'index.mjs') },
      ],
    },
  },
  themeConfig: {
    search: { provider: 'local' },
    outline: [2, 3],
    nav: [
      { text: 'Quick start', link: '/' },
      // No page of this site: the browser must load it.
      { text: 'API reference', link: '/reference/', target: '_self' },
    ],
    sidebar: READERS,
  },
  buildEnd({ outDir, pages, rewrites }) {
    const missing = pages.map((page) => rewrites.map[page] ?? page).filter((page) => !isInNavigation(page));
    if (missing.length > 0) throw new Error(`the navigation lacks ${missing.join(', ')}`);
    const out = join(outDir, 'reference');
    cpSync(join(docs, 'reference'), out, { recursive: true });
    const scalar = require.resolve('@scalar/api-reference/style.css');
    copyFileSync(join(dirname(scalar), 'browser', 'standalone.js'), join(out, 'standalone.js'));
    copyFileSync(join(docs, 'openapi.json'), join(out, 'openapi.json'));
    for (const file of ['openapi.json', 'signaling.schema.json']) copyFileSync(join(docs, file), join(outDir, file));
  },
});
