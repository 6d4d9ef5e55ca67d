import type { ReportedLayers } from './layer-wants.js';
import type { Talking } from './speakers.js';

/** What a room reports to the other gateways that hold sessions of it. */
export interface RoomReports {
  /** Who talks at the publishers of this gateway. */
  speakers: (talking: Talking) => void;
  /** What the members at this gateway want of the tracks of others. */
  layers: (layers: ReportedLayers) => void;
}
export const NO_REPORTS: RoomReports = { speakers: () => undefined, layers: () => undefined };
