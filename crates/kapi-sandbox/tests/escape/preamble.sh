# Stands before every attempt in shell: how it says what it tried and what came of it.
refuse() {
  local what=$1 said
  shift
  if said=$("$@" 2>&1 </dev/null); then echo "escaped $what $said"; return; fi
  case $said in
    *"Read-only file system"*) echo "refused $what EROFS" ;;
    *"No such file or directory"* | *"not found"*) echo "refused $what ENOENT" ;;
    *"Permission denied"*) echo "refused $what EACCES" ;;
    *"Operation not permitted"* | *"not permitted"*) echo "refused $what EPERM" ;;
    *"Invalid cross-device link"*) echo "refused $what EXDEV" ;;
    *"Device or resource busy"*) echo "refused $what EBUSY" ;;
    *) echo "refused $what UNKNOWN $said" ;;
  esac
}
