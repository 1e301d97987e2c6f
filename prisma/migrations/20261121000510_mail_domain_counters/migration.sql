-- The ladder of checks follows from the verification window, and the verdict of a check decides with that check.
alter table mail_domain drop column attempt, drop column last_miss;
