"""The parts of Postgres' system catalog that psql, drivers and BI tools query, as DuckDB's SQL. Tables of features that
this server lacks are empty."""

from __future__ import annotations

_FILLED = {
    "pg_namespace": "oid BIGINT, nspname VARCHAR, nspowner BIGINT, nspacl VARCHAR[]",
    "pg_class": "oid BIGINT, relname VARCHAR, relnamespace BIGINT, relnatts SMALLINT, relkind VARCHAR DEFAULT 'r', "
    "reltype BIGINT DEFAULT 0, reloftype BIGINT DEFAULT 0, relowner BIGINT DEFAULT 10, relam BIGINT DEFAULT 0, "
    "reltablespace BIGINT DEFAULT 0, relpages INTEGER DEFAULT 0, reltuples REAL DEFAULT -1, "
    "reltoastrelid BIGINT DEFAULT 0, relhasindex BOOLEAN DEFAULT false, relisshared BOOLEAN DEFAULT false, "
    "relpersistence VARCHAR DEFAULT 'p', relchecks SMALLINT DEFAULT 0, relhasrules BOOLEAN DEFAULT false, "
    "relhastriggers BOOLEAN DEFAULT false, relhassubclass BOOLEAN DEFAULT false, "
    "relrowsecurity BOOLEAN DEFAULT false, relforcerowsecurity BOOLEAN DEFAULT false, "
    "relispopulated BOOLEAN DEFAULT true, relreplident VARCHAR DEFAULT 'd', relispartition BOOLEAN DEFAULT false, "
    "relfilenode BIGINT DEFAULT 0, relacl VARCHAR[], reloptions VARCHAR[], relpartbound VARCHAR",
    "pg_attribute": "attrelid BIGINT, attname VARCHAR, atttypid BIGINT, attlen SMALLINT, attnum SMALLINT, "
    "atttypmod INTEGER, attndims INTEGER DEFAULT 0, attnotnull BOOLEAN DEFAULT false, "
    "atthasdef BOOLEAN DEFAULT false, attisdropped BOOLEAN DEFAULT false, attislocal BOOLEAN DEFAULT true, "
    "attidentity VARCHAR DEFAULT '', attgenerated VARCHAR DEFAULT '', attcollation BIGINT DEFAULT 0, "
    "attstattarget INTEGER DEFAULT -1, attstorage VARCHAR DEFAULT 'p', attcompression VARCHAR DEFAULT '', "
    "attoptions VARCHAR[], attfdwoptions VARCHAR[], attacl VARCHAR[]",
    "pg_type": "oid BIGINT, typname VARCHAR, typlen SMALLINT, typcategory VARCHAR, typnamespace BIGINT DEFAULT 11, "
    "typowner BIGINT DEFAULT 10, typtype VARCHAR DEFAULT 'b', typrelid BIGINT DEFAULT 0, typelem BIGINT DEFAULT 0, "
    "typarray BIGINT DEFAULT 0, typbasetype BIGINT DEFAULT 0, typtypmod INTEGER DEFAULT -1, "
    "typnotnull BOOLEAN DEFAULT false, typcollation BIGINT DEFAULT 0, typdelim VARCHAR DEFAULT ',', "
    "typndims INTEGER DEFAULT 0, typinput VARCHAR DEFAULT '', typreceive VARCHAR DEFAULT '', typdefault VARCHAR",
    "pg_database": "oid BIGINT, datname VARCHAR, datdba BIGINT DEFAULT 10, encoding INTEGER DEFAULT 6, "
    "datlocprovider VARCHAR DEFAULT 'c', datistemplate BOOLEAN DEFAULT false, datallowconn BOOLEAN DEFAULT true, "
    "datconnlimit INTEGER DEFAULT -1, dattablespace BIGINT DEFAULT 0, datcollate VARCHAR DEFAULT 'C', "
    "datctype VARCHAR DEFAULT 'C', daticulocale VARCHAR, datacl VARCHAR[]",
    "pg_roles": "oid BIGINT, rolname VARCHAR, rolsuper BOOLEAN DEFAULT false, rolinherit BOOLEAN DEFAULT true, "
    "rolcreaterole BOOLEAN DEFAULT false, rolcreatedb BOOLEAN DEFAULT false, rolcanlogin BOOLEAN DEFAULT true, "
    "rolreplication BOOLEAN DEFAULT false, rolbypassrls BOOLEAN DEFAULT false, rolconnlimit INTEGER DEFAULT -1, "
    "rolvaliduntil TIMESTAMPTZ, rolconfig VARCHAR[]",
    "pg_settings": "name VARCHAR, setting VARCHAR",
    "pg_cursors": "name VARCHAR, statement VARCHAR, is_holdable BOOLEAN, is_binary BOOLEAN DEFAULT false, "
    "is_scrollable BOOLEAN DEFAULT false",
}

_EMPTY = {
    "pg_am": "oid amname",
    "pg_attrdef": "oid adrelid adnum adbin",
    "pg_auth_members": "oid roleid member grantor admin_option",
    "pg_collation": "oid collname collnamespace",
    "pg_constraint": "oid conname connamespace contype condeferrable condeferred convalidated conrelid contypid "
    "conindid conparentid confrelid confupdtype confdeltype confmatchtype conislocal conkey confkey conbin",
    "pg_depend": "classid objid objsubid refclassid refobjid refobjsubid deptype",
    "pg_description": "objoid classoid objsubid description",
    "pg_enum": "oid enumtypid enumsortorder enumlabel",
    "pg_event_trigger": "oid evtname evtevent evtowner evtfoid evtenabled evttags",
    "pg_extension": "oid extname extowner extnamespace extversion",
    "pg_foreign_server": "oid srvname",
    "pg_foreign_table": "ftrelid ftserver ftoptions",
    "pg_index": "indexrelid indrelid indnatts indnkeyatts indisunique indisprimary indisexclusion indimmediate "
    "indisclustered indisvalid indisreplident indkey indclass indcollation indoption indexprs indpred",
    "pg_inherits": "inhrelid inhparent inhseqno inhdetachpending",
    "pg_language": "oid lanname",
    "pg_locks": "locktype database relation pid mode granted",
    "pg_matviews": "schemaname matviewname matviewowner definition",
    "pg_opclass": "oid opcname opcnamespace opcintype opcdefault",
    "pg_partitioned_table": "partrelid partstrat partnatts partdefid partattrs",
    "pg_policy": "oid polname polrelid polcmd polpermissive polroles polqual polwithcheck",
    "pg_proc": "oid proname pronamespace prokind prorettype proargtypes proretset",
    "pg_publication": "oid pubname puballtables pubviaroot pubinsert pubupdate pubdelete pubtruncate",
    "pg_publication_namespace": "oid pnpubid pnnspid",
    "pg_publication_rel": "oid prpubid prrelid prqual prattrs",
    "pg_range": "rngtypid rngsubtype rngmultitypid",
    "pg_rewrite": "oid rulename ev_class ev_type ev_enabled is_instead",
    "pg_sequence": "seqrelid seqtypid seqstart seqincrement",
    "pg_shdescription": "objoid classoid description",
    "pg_stat_activity": "datid datname pid usename application_name state query",
    "pg_statistic_ext": "oid stxname stxnamespace stxrelid stxkeys stxkind stxstattarget",
    "pg_tablespace": "oid spcname",
    "pg_trigger": "oid tgname tgrelid tgparentid tgenabled tgisinternal tgconstraint tgdeferrable tginitdeferred",
    "pg_views": "schemaname viewname viewowner definition",
}
_LISTS = frozenset(
    {"conkey", "confkey", "indclass", "indcollation", "indkey", "indoption"}
    | {"partattrs", "polroles", "prattrs", "proargtypes", "stxkeys"}
)
_NUMBERS = ("oid", "id", "relid", "objid", "classid", "objoid")

_VIEWS = {
    "pg_tables": "SELECT nspname AS schemaname, relname AS tablename, pg_get_userbyid(relowner) AS tableowner, "
    "NULL::VARCHAR AS tablespace, false AS hasindexes, false AS hasrules, false AS hastriggers, false AS rowsecurity "
    "FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace",
    "pg_user": "SELECT rolname AS usename, oid AS usesysid, rolcreatedb AS usecreatedb, rolsuper AS usesuper "
    "FROM pg_roles",
    "information_schema_schemata": "SELECT current_database() AS catalog_name, nspname AS schema_name, "
    "pg_get_userbyid(nspowner) AS schema_owner FROM pg_namespace",
    "information_schema_tables": "SELECT current_database() AS table_catalog, schemaname AS table_schema, "
    "tablename AS table_name, 'BASE TABLE' AS table_type, 'NO' AS is_insertable_into FROM pg_tables",
    "information_schema_columns": "SELECT current_database() AS table_catalog, nspname AS table_schema, "
    "relname AS table_name, attname AS column_name, attnum::INTEGER AS ordinal_position, "
    "NULL::VARCHAR AS column_default, 'YES' AS is_nullable, format_type(atttypid, NULL) AS data_type, "
    "typname AS udt_name, NULL::INTEGER AS character_maximum_length, "
    "CASE WHEN atttypmod >= 4 THEN (atttypmod - 4) >> 16 END AS numeric_precision, "
    "CASE WHEN atttypmod >= 4 THEN (atttypmod - 4) & 65535 END AS numeric_scale, "
    "'NO' AS is_identity, 'NEVER' AS is_generated, 'NO' AS is_updatable "
    "FROM pg_attribute a JOIN pg_class c ON c.oid = attrelid JOIN pg_namespace n ON n.oid = relnamespace "
    "LEFT JOIN pg_type t ON t.oid = atttypid",
    "information_schema_views": "SELECT NULL::VARCHAR AS table_catalog, NULL::VARCHAR AS table_schema, "
    "NULL::VARCHAR AS table_name, NULL::VARCHAR AS view_definition WHERE false",
}

_FUNCTIONS = {
    "array_upper": "(a, n) AS len(a)",
    "col_description": "(o, n) AS NULL::VARCHAR",
    "current_setting": "(n) AS (SELECT setting FROM pg_settings WHERE name = lower(n)), "
    "(n, missing) AS (SELECT setting FROM pg_settings WHERE name = lower(n))",
    "getdatabaseencoding": "() AS 'UTF8'",
    "has_database_privilege": "(a, b) AS true, (a, b, c) AS true",
    "has_schema_privilege": "(a, b) AS true, (a, b, c) AS true",
    "has_table_privilege": "(a, b) AS true, (a, b, c) AS true",
    "inet_server_addr": "() AS NULL::VARCHAR",
    "inet_server_port": "() AS NULL::INTEGER",
    "obj_description": "(o) AS NULL::VARCHAR, (o, c) AS NULL::VARCHAR",
    "pg_encoding_to_char": "(n) AS 'UTF8'",
    "pg_function_is_visible": "(o) AS true",
    "pg_get_constraintdef": "(o) AS NULL::VARCHAR, (o, pretty) AS NULL::VARCHAR",
    "pg_get_expr": "(e, o) AS NULL::VARCHAR, (e, o, pretty) AS NULL::VARCHAR",
    "pg_get_function_arguments": "(o) AS NULL::VARCHAR",
    "pg_get_function_result": "(o) AS NULL::VARCHAR",
    "pg_get_indexdef": "(o) AS NULL::VARCHAR, (o, n, pretty) AS NULL::VARCHAR",
    "pg_get_partkeydef": "(o) AS NULL::VARCHAR",
    "pg_get_serial_sequence": "(o, c) AS NULL::VARCHAR",
    "pg_get_statisticsobjdef_columns": "(o) AS NULL::VARCHAR",
    "pg_get_triggerdef": "(o) AS NULL::VARCHAR, (o, pretty) AS NULL::VARCHAR",
    "pg_get_viewdef": "(o) AS NULL::VARCHAR, (o, pretty) AS NULL::VARCHAR",
    "pg_is_in_recovery": "() AS false",
    "pg_is_other_temp_schema": "(o) AS false",
    "pg_my_temp_schema": "() AS 0",
    "pg_relation_is_publishable": "(o) AS false",
    "pg_relation_size": "(o) AS 0, (o, fork) AS 0",
    "pg_total_relation_size": "(o) AS 0",
    "pg_type_is_visible": "(o) AS true",
    "set_config": "(n, v, l) AS v",
    "shobj_description": "(o, c) AS NULL::VARCHAR",
    "to_regclass": "(n) AS (SELECT min(c.oid) FROM pg_class c JOIN pg_namespace s ON s.oid = c.relnamespace "
    "WHERE c.relname = replace(n, '\"', '') OR s.nspname || '.' || c.relname = replace(n, '\"', ''))",
    "to_regtype": "(n) AS (SELECT min(oid) FROM pg_type WHERE typname = n OR format_type(oid, NULL) = n)",
}

STANDALONE_FUNCTIONS = frozenset(
    {"version", "current_database", "current_catalog", "current_schema", "current_schemas", "current_user"}
    | {"session_user", "current_role", "user", "pg_backend_pid", "pg_get_userbyid", "pg_table_is_visible"}
    | {"format_type", *_FUNCTIONS}
)
"""Functions that make a statement without FROM a catalog query."""

FUNCTIONS = frozenset(_FUNCTIONS)
"""All functions that ``functions`` creates."""

RELATIONS = frozenset({*_FILLED, *_EMPTY, *_VIEWS})
"""All tables and views. Those of ``information_schema`` have the prefix ``information_schema_``."""


def tables() -> list[str]:
    """Statements that create the tables and types."""
    empty = {name: ", ".join(f'"{column}" {_type(column)}' for column in text.split()) for name, text in _EMPTY.items()}
    made = [f"CREATE TABLE {name} ({columns})" for name, columns in {**_FILLED, **empty}.items()]
    names = ("name", "regclass", "regnamespace", "regproc", "regrole", "regtype")
    return [*made, *(f"CREATE TYPE {name} AS VARCHAR" for name in names)]


def functions() -> list[str]:
    """Statements that create the functions, and the views that use them. ``format_type`` and the functions that depend
    on the client must exist already."""
    made = [f"CREATE MACRO {name}{text}" for name, text in _FUNCTIONS.items()]
    return [*made, *(f"CREATE VIEW {name} AS {text}" for name, text in _VIEWS.items())]


def _type(column: str) -> str:
    if column in _LISTS:
        return "BIGINT[]"
    if column == "stxkind":
        return "VARCHAR[]"
    return "BIGINT" if column.endswith(_NUMBERS) else "VARCHAR"
