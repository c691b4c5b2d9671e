#!/bin/bash
# Stands for posattn where documented_commands_test.py runs what a page shows: a command that would take
# minutes does less, or only its command and options are looked up.
set -e -o pipefail

for (( place = 1; place <= $#; ++place )); do  # ncu is this script, too
  [[ ${!place} == */posattn || ${!place} == posattn ]] && break
done
launched=0
if (( place <= $# )); then launched=1; shift "$place"; fi

args=("$@")
has() { [[ " ${args[*]} " == *" $1 "* || " ${args[*]} " == *" $1="* ]]; }
# The option's value in place of that which the page has.
set_option() {
  for (( k = 1; k < ${#args[@]}; ++k )); do
    if [[ ${args[k]} == "$1" ]]; then args[k + 1]=$2; return; fi
  done
  args+=("$1" "$2")
}
look_up() {
  local help option
  help=$("$POSATTN" help "${args[0]}")
  for option in "${args[@]:1}"; do
    [[ $option == --[a-z]* ]] || continue
    grep -qE -- "${option%%=*}([^a-z-]|$)" <<< "$help" || { echo "error: no flag $option" >&2; exit 2; }
  done
  exit 0
}

if (( LOOK_UP || launched )); then look_up; fi
case ${args[0]} in
  train | reproduce | submit)
    for (( k = 1; k < ${#args[@]}; ++k )); do  # there need be no GPU
      [[ ${args[k]} == --device ]] && args[k + 1]=cpu
    done
    has --dry-run || args+=(--dry-run)
    [[ ${args[0]} == train ]] || has --results || args+=(--results nothing-yet) ;;
  certify) set_option --steps 1; set_option --draws 10 ;;
  verify | scale | evaluate) set_option --samples 50 ;;
esac
exec "$POSATTN" "${args[@]}"
