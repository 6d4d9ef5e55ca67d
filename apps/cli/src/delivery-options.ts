import {
  DELIVERY_FAILURE_REASONS,
  DELIVERY_STATUSES,
  EVENT_TYPES,
  type DeliveryFailureReason,
  type DeliveryStatus,
  type EventType,
} from '@callplane/core';
import type { DeliveryFilter } from '@callplane/db';
import { Option, type Command } from 'commander';
import type { Cli } from './cli.js';
import { UsageError } from './failure.js';
import { addListOptions, filterOf, type ListOptions } from './list-options.js';
import { quoted } from './output.js';

/** The filters of a list of deliveries, and of commands for many of them. */
export interface DeliveryOptions extends ListOptions {
  status?: DeliveryStatus;
  reason?: DeliveryFailureReason;
  type?: EventType;
  endpoint?: string;
}

/** The options of a command for one delivery, or for all that the filters select. */
export interface SendAgainOptions extends DeliveryOptions {
  yes?: true;
}

export function addDeliveryFilters(command: Command): Command {
  return addListOptions(command)
    .option('--endpoint <id>', 'filter by endpoint (whep_…)')
    .addOption(new Option('--reason <reason>', 'filter by failure reason').choices(DELIVERY_FAILURE_REASONS))
    .addOption(new Option('--type <type>', 'filter by type of event').choices(EVENT_TYPES));
}

export function deliveryFilterOf(cli: Cli, options: DeliveryOptions): DeliveryFilter {
  return {
    ...filterOf(cli, options),
    statuses: options.status === undefined ? DELIVERY_STATUSES : [options.status],
    failureReason: options.reason ?? null,
    eventType: options.type ?? null,
    endpointId: options.endpoint ?? null,
  };
}

export function noDelivery(deliveryId: string): UsageError {
  return new UsageError(`Delivery ${quoted(deliveryId)} not found. "rtc deliveries list" lists deliveries.`);
}
