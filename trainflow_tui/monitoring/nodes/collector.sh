# What one node tells about itself. POSIX sh, read from stdin by `sh -s`; needs no root and changes nothing.
# Each section: RS "> name", its output, RS "< name exit-code", RS being the control character 036.
LC_ALL=C
PATH=$PATH:/usr/local/bin:/usr/local/sbin:/usr/sbin:/sbin:/opt/rocm/bin:/opt/hyhal/bin:/opt/dtk/bin:/usr/local/nvidia/bin
PATH=$PATH:/usr/local/Ascend/driver/tools
export LC_ALL PATH
if command -v timeout >/dev/null 2>&1; then bounded=yes; else bounded=; fi

# section NAME SECONDS SCRIPT. stdin is this script and must not reach a child.
section() {
  printf '\n\036> %s\n' "$1"
  if [ -n "$bounded" ]; then
    timeout -k 1 "$2" sh -c "$3" </dev/null 2>/dev/null
  else
    sh -c "$3" </dev/null 2>/dev/null
  fi
  ended=$?
  printf '\n\036< %s %s\n' "$1" "$ended"
  return "$ended"
}

section identity 5 '
  printf "hostname %s\n" "$(hostname || uname -n)"
  printf "kernel %s\n" "$(uname -sr)"
  printf "machine %s\n" "$(uname -m)"
  printf "boot_id %s\n" "$(cat /proc/sys/kernel/random/boot_id || sysctl -n kern.bootsessionuuid)"
  printf "uptime_s %s\n" "$(cut -d " " -f 1 /proc/uptime)"
  printf "cpus %s\n" "$(getconf _NPROCESSORS_ONLN)"
  printf "date_s %s\n" "$(date +%s.%N)"'

section load 5 'cat /proc/loadavg'

section memory 5 'grep -E "^(MemTotal|MemAvailable):" /proc/meminfo'

section pressure 5 '
  for resource in cpu memory io; do
    [ -r /proc/pressure/$resource ] && sed "s/^/$resource /" /proc/pressure/$resource
  done
  [ -d /proc/pressure ]'

# A dead network mount stops df for ever; then at least the local disks are told.
section disks 5 'df -kP' || section local_disks 5 'df -kPl'

# State, pid, age of the process in seconds, name: uninterruptible and dead ones only.
section processes 5 '
  all=$(ps -eo stat=,pid=,etimes=,comm=) || exit 3
  printf "%s\n" "$all" | grep "^[DZ]" | head -n 200'

section tools 5 '
  for tool in nvidia-smi dcgmi rocm-smi amd-smi hy-smi npu-smi ibstat ibdev2netdev rdma ethtool sinfo docker kubectl; do
    command -v $tool >/dev/null && printf "%s\n" $tool
  done
  true'

# Address, vendor, device, class, link speed, link width, driver of each accelerator: a dead driver hides none of them.
# Classes: 03 display, 12 processing accelerator, 0b40 co-processor; of 19e5 only 12, since 03 is its management chip.
section accelerators 5 '
  [ -d /sys/bus/pci/devices ] || exit 3
  for function in /sys/bus/pci/devices/*; do
    read -r vendor <$function/vendor && read -r class <$function/class || continue
    case $vendor:$class in
      0x10de:0x03*|0x10de:0x12*|0x1002:0x03*|0x1002:0x12*|0x1d94:0x03*|0x1d94:0x12*|0x1d94:0x0b40*|0x19e5:0x12*) ;;
      *) continue ;;
    esac
    device= speed= width= driver=
    read -r device <$function/device
    [ -r $function/current_link_speed ] && read -r speed <$function/current_link_speed
    [ -r $function/current_link_width ] && read -r width <$function/current_link_width
    [ -e $function/driver ] && driver=$(readlink $function/driver)
    printf "%s|%s|%s|%s|%s|%s|%s\n" "${function##*/}" "$vendor" "$device" "$class" "$speed" "$width" "${driver##*/}"
  done
  true'

# Last, because it can hang in the driver; not at all while an earlier one hangs there.
if command -v nvidia-smi >/dev/null 2>&1; then
  section nvidia_smi 15 '
    if ps -eo stat=,comm= | grep -q "^D.*nvidia-smi"; then exit 75; fi
    fields=index,name,uuid,pci.bus_id,temperature.gpu,utilization.gpu,memory.used,memory.total,power.draw,power.limit
    fields=$fields,ecc.errors.uncorrected.volatile.total,pstate
    answer=$(nvidia-smi --query-gpu=$fields,clocks_event_reasons.active --format=csv 2>&1)
    code=$?
    case $answer in
      *"not a valid field"*)
        answer=$(nvidia-smi --query-gpu=$fields,clocks_throttle_reasons.active --format=csv 2>&1)
        code=$? ;;
    esac
    printf "%s\n" "$answer"
    exit $code'
fi
printf '\n\036> end\n\n\036< end 0\n'
