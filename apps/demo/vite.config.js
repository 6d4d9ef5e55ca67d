import { defineConfig } from 'vite';

export default defineConfig({
  base: '/demo/',
  // Everything in files of its own: the page runs under a content security policy without inline code.
  build: { target: 'es2022', assetsInlineLimit: 0, modulePreload: { polyfill: false } },
});
