import type { CarriedSection, CarriedStream, StreamReference, StreamSettings } from '../media-node.js';
import type { PluginAnswer } from './janus-handle.js';
import { objectOf, objectsIn, textOf } from './janus-messages.js';

/**
 * How long a chosen simulcast layer may be silent until Janus sends a lower one, in microseconds. Its default of 250 ms
 * is too short for a publisher whose uplink recovers.
 */
const FALLBACK_US = 1_000_000;

/** The highest layers, which Janus sends unless it is told otherwise. */
const LAYER_MAX = 2;

/** The streams that the media sections carry, as Janus lists them. */
export function streamsIn(answer: PluginAnswer): CarriedStream[] {
  return activeIn(answer).map(streamOf);
}

/** The same, with what Janus knows of each section. */
export function sectionsIn(answer: PluginAnswer): CarriedSection[] {
  return activeIn(answer).map((stream) => {
    const { 'substream-target': spatial, 'temporal-layer-target': temporal } = objectOf(stream['simulcast']);
    return {
      ...streamOf(stream),
      isNegotiated: stream['ready'] !== false,
      settings: { spatial: layerIn(spatial), temporal: layerIn(temporal), paused: stream['send'] === false },
    };
  });
}

function activeIn({ data }: PluginAnswer): Readonly<Record<string, unknown>>[] {
  return objectsIn(data['streams']).filter((one) => one['active'] === true && one['feed_id'] !== undefined);
}

function streamOf(stream: Readonly<Record<string, unknown>>): CarriedStream {
  return {
    feedId: textOf(stream['feed_id']),
    mid: textOf(stream['feed_mid']),
    subscriberMid: textOf(stream['mid']),
  };
}

/** Undefined for a stream without layers, and for the highest one. */
function layerIn(value: unknown): number | undefined {
  return typeof value === 'number' && value < LAYER_MAX ? value : undefined;
}

/** Janus' words for the settings; absent ones stay absent. */
export function settingsOf({ spatial, temporal, paused }: StreamSettings): Record<string, number | boolean> {
  return {
    fallback: FALLBACK_US,
    ...(spatial === undefined ? {} : { substream: spatial }),
    ...(temporal === undefined ? {} : { temporal }),
    ...(paused === undefined ? {} : { send: !paused }),
  };
}

/** Identifies a stream. */
export const keyOf = ({ feedId, mid }: StreamReference): string => JSON.stringify([feedId, mid]);
