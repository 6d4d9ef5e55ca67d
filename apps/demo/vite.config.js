import { defineConfig } from 'vite';

export default defineConfig({
  base: '/demo/',
  // Emits everything as separate files: the page's content security policy forbids inline code.
  build: { target: 'es2022', assetsInlineLimit: 0, modulePreload: { polyfill: false } },
});
