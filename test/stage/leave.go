// SPDX-License-Identifier: Apache-2.0

package stage

import "fmt"

// Leave ends everything after a run of tests that had this exit code, and gives the one that is right now. The logs stay if
// anything is wrong. When all has ended, look says what else is, and may be nil.
func (s *Stage) Leave(code int, look func(isGood bool) []string) int {
	if err := s.End(); err != nil {
		fmt.Println("FAIL: ending the stage:", err)
		code = max(code, 1)
	}
	if look != nil {
		for _, fault := range look(code == 0) {
			fmt.Println("FAIL:", fault)
			code = max(code, 1)
		}
	}
	if code != 0 {
		fmt.Println("logs are in", s.Dir())
		return code
	}
	if err := s.Remove(); err != nil {
		fmt.Println("FAIL:", err)
		return 1
	}
	return 0
}
