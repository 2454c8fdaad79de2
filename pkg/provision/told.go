// SPDX-License-Identifier: Apache-2.0

package provision

// LeftToPopulator is what users are told about a claim whose source the driver cannot read.
const LeftToPopulator = "Assuming an external populator will provision the volume"
