-- A notification locks all commits of the cluster for a moment: steps write the state they find, and tell nobody.
drop trigger operation_changed on operation;
create trigger operation_opened after insert on operation for each row execute function operation_changed();
create trigger operation_changed after update of state on operation for each row when (old.state is distinct from new.state)
  execute function operation_changed();
