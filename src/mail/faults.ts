import { notFound, type AppError } from '../core/errors';
import type { ServiceRow } from './store/services';

export function noService(): AppError {
  return notFound('Mail service');
}

export function noDomain(): AppError {
  return notFound('Mail domain');
}

export function noKey(): AppError {
  return notFound('API key');
}

export function noSuppression(): AppError {
  return notFound('Suppression');
}

/** Errors: `not_found`. */
export function requireService(service: ServiceRow | null): ServiceRow {
  if (!service) throw noService();
  return service;
}

export function noWebhook(): AppError {
  return notFound('Webhook');
}

export function noDelivery(): AppError {
  return notFound('Delivery');
}
