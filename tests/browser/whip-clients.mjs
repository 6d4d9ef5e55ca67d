export { WHIPClient as Binbat } from '@binbat/whip-whep/whip.js';
export { WHIPClient as Eyevinn } from '@eyevinn/whip-web-client';
