import { defaultClientConditions, defineConfig } from 'vite';

export default defineConfig({
  base: '/demo/',
  // The SDK comes from its sources, so that the page can be built without any other build.
  resolve: { conditions: ['source', ...defaultClientConditions] },
  // Emits everything as separate files: the page's content security policy forbids inline code.
  build: {
    target: 'es2022',
    cssTarget: ['chrome123', 'firefox120', 'safari17.5'],
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
});
