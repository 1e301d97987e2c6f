#!/bin/sh
# Runs once, when the database server's volume is empty: Temporal gets a role of its own and may make its two databases.
set -eu
psql -v ON_ERROR_STOP=1 --username "$POSTGRES_USER" --dbname "$POSTGRES_DB" -v password="$TEMPORAL_DB_PASSWORD" <<'SQL'
create role temporal login createdb password :'password';
SQL
