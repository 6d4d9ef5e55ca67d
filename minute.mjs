// By hand: start, two tabs, a recorded minute.
import { readFileSync, writeFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { chromium } from 'playwright-core';
const dir = process.argv[2];
const dev = JSON.parse(readFileSync(dir + '/dev.json', 'utf8'));
const began = performance.now(); const at = () => ((performance.now() - began) / 1000).toFixed(1) + ' s';
const api = async (method, path, body) => { const r = await fetch(dev.baseUrl + path, { method, headers: { authorization: 'Bearer ' + dev.secretKey, 'content-type': 'application/json' }, ...(body ? { body: JSON.stringify(body) } : {}) }); const t = await r.text(); return { status: r.status, body: t ? JSON.parse(t) : null }; };
const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', headless: true, args: ['--no-sandbox', '--use-fake-ui-for-media-stream', '--use-fake-device-for-media-stream', '--autoplay-policy=no-user-gesture-required'] });
const pages = [];
for (const name of ['Ada', 'Bob']) {
  const page = await (await browser.newContext({ viewport: name === 'Ada' ? { width: 1280, height: 800 } : { width: 390, height: 844 } })).newPage();
  page.on('console', (m) => { if (m.type() === 'error') console.log(name, 'console error:', m.text()); });
  await page.goto(dev.demoUrl);
  await page.screenshot({ path: `/tmp/shots/prejoin-${name}.png` });
  await page.getByRole('textbox').first().fill(name);
  await page.getByRole('button', { name: /join/i }).first().click();
  pages.push(page);
}
console.log('joined', at());
await delay(4000);
const rooms = await api('GET', '/rooms?limit=1');
const room = rooms.body.data[0].id;
const rec = await api('POST', `/rooms/${room}/recordings`, { mode: 'composite' });
console.log('recording', rec.status, rec.body.id ?? rec.body, at());
await delay(3000);
for (const [i, page] of pages.entries()) await page.screenshot({ path: `/tmp/shots/call-${i}.png` });
await delay(57000);
console.log('stop', (await api('POST', `/recordings/${rec.body.id}/stop`)).status, at());
const stopped = performance.now();
for (;;) { const r = await api('GET', `/recordings/${rec.body.id}`); if (['completed', 'failed'].includes(r.body.status)) { console.log(r.body.status, JSON.stringify(r.body.files), JSON.stringify(r.body.lastError), 'after', ((performance.now() - stopped) / 1000).toFixed(1), 's'); const l = await api('POST', `/recordings/${rec.body.id}/files/${r.body.files[0].id}/url`, {}); console.log(l.status); const f = await fetch(l.body.url, { headers: { range: 'bytes=0-1023' } }); console.log('link', f.status, f.headers.get('content-range')); writeFileSync('/tmp/shots/minute.mp4', Buffer.from(await (await fetch(l.body.url)).arrayBuffer())); break; } await delay(500); }
await browser.close();
