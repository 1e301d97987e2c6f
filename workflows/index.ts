/** Exports are public names: they change only behind patched(), and each has a recorded history in test/workflows/histories. */
export { reconcile } from './system/reconcile';
export { deletePostgres } from './postgres/delete-postgres';
export { provisionPostgres } from './postgres/provision-postgres';
