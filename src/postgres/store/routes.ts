import { rows, type Db } from '../../db/client';
import type { Plan } from '../rules';
import type { Status, StatusReason, StorageState } from '../state';

/** What decides whether, where and how a connection is let in. Names and limits follow from id and plan. */
export type Route = {
  serviceId: string; key: string; status: Status; statusReason: StatusReason | null; accessOpen: boolean; storageState: StorageState; plan: Plan;
  allowedCidrs: string[];
};

const columns = `id as "serviceId", key, status, status_reason as "statusReason", access_open as "accessOpen", storage_state as "storageState", plan,
  allowed_cidrs as "allowedCidrs"`;

/** Services a customer may name: all that are not deleted and stand behind the gateway. */
export function loadRoutes(db: Db): Promise<Route[]> {
  return rows<Route>(db, `select ${columns} from postgres_service where isolation = 'instance' and status <> 'deleted'`);
}

/** By service id or by key; null when there is none, or none any more. */
export async function findRoute(db: Db, name: string): Promise<Route | null> {
  const column = name.startsWith('pg_') ? 'id' : 'key';
  const [row] = await rows<Route>(db, `select ${columns} from postgres_service where ${column} = $1 and isolation = 'instance' and status <> 'deleted'`, name);
  return row ?? null;
}
